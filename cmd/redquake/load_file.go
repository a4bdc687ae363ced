package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
)

// readLoadTest reads the one RedisLoadTest in a file of YAML or JSON documents, "-" for in. Other objects beside it are passed over, so
// that the file that is applied to a cluster can be read as it is. Decoding is strict; errors begin with the file and name the field.
func readLoadTest(file string, in io.Reader) (*v1alpha1.RedisLoadTest, error) {
	name := file
	if file == "-" {
		name = "standard input"
	} else {
		opened, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("--file: %w", err)
		}
		defer func() { _ = opened.Close() }()
		in = opened
	}
	var test *v1alpha1.RedisLoadTest
	reader := utilyaml.NewYAMLReader(bufio.NewReader(in))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found, err := decodeLoadTest(document)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case found != nil && test != nil:
			return nil, fmt.Errorf("%s: holds more than one RedisLoadTest (%s and %s)", name, test.Name, found.Name)
		case found != nil:
			test = found
		}
	}
	if test == nil {
		return nil, fmt.Errorf("%s: holds no RedisLoadTest of %s", name, v1alpha1.GroupVersion)
	}
	return test, nil
}

// decodeLoadTest reads one document; nil where it is something else.
func decodeLoadTest(document []byte) (*v1alpha1.RedisLoadTest, error) {
	var kind struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return nil, fmt.Errorf("is no YAML of an object: %s", strings.TrimPrefix(err.Error(), "error converting YAML to JSON: yaml: "))
	}
	if kind.Kind != "RedisLoadTest" {
		return nil, nil
	}
	if kind.APIVersion != v1alpha1.GroupVersion.String() {
		return nil, fmt.Errorf("apiVersion: is %q, must be %q", kind.APIVersion, v1alpha1.GroupVersion)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	test := &v1alpha1.RedisLoadTest{}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	if _, _, err := decoder.Decode(document, nil, test); err != nil {
		return nil, decodeError(document, err)
	}
	return test, nil
}

// decodeError finds the field that err is about: encoding/json does not name it where a type reads itself, as durations do.
func decodeError(document []byte, err error) error {
	if text, ok := strings.CutPrefix(err.Error(), "strict decoding error: "); ok {
		return errors.New(text) // names its fields
	}
	var value any
	if yaml.Unmarshal(document, &value) == nil {
		if path, cause := misfit("", reflect.TypeFor[v1alpha1.RedisLoadTest](), value); cause != nil {
			return fmt.Errorf("%s: %w", strings.TrimPrefix(path, "."), cause)
		}
	}
	return err
}

// misfit returns the path below at of the deepest part of value that does not fit type t, and why; nil where all fits.
func misfit(at string, t reflect.Type, value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return at, err
	}
	cause := json.Unmarshal(text, reflect.New(t).Interface())
	if cause == nil {
		return "", nil
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := value.(type) {
	case map[string]any:
		if t.Kind() != reflect.Struct {
			break
		}
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			member, there := v[name]
			if !there || name == "" {
				continue
			}
			if path, err := misfit(at+"."+name, f.Type, member); err != nil {
				return path, err
			}
		}
	case []any:
		if t.Kind() != reflect.Slice {
			break
		}
		for i, item := range v {
			if path, err := misfit(at+"["+strconv.Itoa(i)+"]", t.Elem(), item); err != nil {
				return path, err
			}
		}
	}
	return at, errors.New(inWords(text, t, cause))
}

// inWords says what is wrong with a value, without encoding/json's names of Go types.
func inWords(text []byte, t reflect.Type, cause error) string {
	if _, ok := errors.AsType[*json.UnmarshalTypeError](cause); !ok {
		return strings.TrimPrefix(cause.Error(), "json: ")
	}
	want := "text"
	switch kind := t.Kind(); {
	case t.Name() == "Duration":
		want = "a duration such as 1m30s"
	case kind == reflect.Struct || kind == reflect.Map:
		want = "an object"
	case kind == reflect.Slice:
		want = "a list"
	case kind == reflect.Bool:
		want = "true or false"
	case kind == reflect.Int32 || kind == reflect.Int64:
		want = "a whole number"
	}
	return fmt.Sprintf("is %s, must be %s", text, want)
}
