package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// installPolicies creates the project's admission policies. The API server enforces them a moment later.
func installPolicies(config *rest.Config) error {
	folder, err := Path("config/policy")
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	for _, name := range []string{
		"redisexperiments.yaml", "redisexperimentschedules.yaml", "redisfaults.yaml",
		"redisloadtests.yaml",
	} {
		err := createAll(c, filepath.Join(folder, name))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// createAll creates the objects of a file.
func createAll(c client.Client, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for documents := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		err := c.Create(context.Background(), object)
		if err != nil {
			return err
		}
	}
}
