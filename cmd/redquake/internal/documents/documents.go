package documents

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Each calls add with each of the YAML or JSON documents, in JSON, until it returns an error.
func Each(text []byte, add func(object []byte) error) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read YAML: %w", err)
		}
		object, err := yaml.YAMLToJSON(document)
		if err != nil {
			return fmt.Errorf("is neither a record nor YAML: %w", err)
		}
		if err := add(object); err != nil {
			return err
		}
	}
}

// Items calls add with an object in JSON and its kind, or with the items of a list and of lists in
// it, until it returns an error.
func Items(object []byte, add func(kind string, object []byte) error) error {
	var head metav1.TypeMeta
	if err := json.Unmarshal(object, &head); err != nil {
		return fmt.Errorf("is not an object: %w", err)
	}
	switch head.Kind {
	case "List", "ConfigMapList", "RedisExperimentList", "RedisExperimentScheduleList",
		"RedisFaultList", "RedisLoadTestList":
		var list struct{ Items []json.RawMessage }
		if err := json.Unmarshal(object, &list); err != nil {
			return fmt.Errorf("decode the %s: %w", head.Kind, err)
		}
		for _, item := range list.Items {
			if err := Items(item, add); err != nil {
				return err
			}
		}
		return nil
	}
	return add(head.Kind, object)
}
