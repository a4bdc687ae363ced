// Package manifest reads the objects of redquake.dev from files as a kube-apiserver accepts them
// from kubectl: it decodes strictly, sets the defaults of the CustomResourceDefinitions, and
// validates by their schemas and CEL rules, so that only the CRDs define what a spec may contain.
package manifest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Object is an object of redquake.dev.
type Object interface {
	runtime.Object
	metav1.Object
}

// ReadLoadTest reads the only RedisLoadTest among YAML or JSON documents. Other objects are
// ignored, so that a file that is applied to a cluster can be used unchanged. complete may add to
// the spec what the file leaves out, before it is validated; nil = nothing.
func ReadLoadTest(
	in io.Reader, complete func(spec map[string]any),
) (*v1alpha1.RedisLoadTest, error) {
	var found *v1alpha1.RedisLoadTest
	reader := utilyaml.NewYAMLReader(bufio.NewReader(in))
	for {
		document, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF) && found == nil:
			return nil, fmt.Errorf("contains no RedisLoadTest of %s", v1alpha1.GroupVersion)
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("read YAML: %w", err)
		}
		var head metav1.TypeMeta
		if err := yaml.Unmarshal(document, &head); err != nil {
			return nil, fmt.Errorf("is not an object in YAML: %s", withoutPrefixes(err))
		}
		if head.Kind != "RedisLoadTest" {
			continue
		}
		test := &v1alpha1.RedisLoadTest{}
		if err := decode(document, test, complete); err != nil {
			return nil, err
		}
		if found != nil {
			return nil, fmt.Errorf("contains more than one RedisLoadTest (%s and %s)", found.Name, test.Name)
		}
		found = test
	}
}

// Decode reads a YAML or JSON document into object as the API server would store it: defaulted, and
// without a status. Unknown and duplicate fields are errors, which name the field.
func Decode(document []byte, object Object) error {
	return decode(document, object, nil)
}

func decode(document []byte, object Object, complete func(spec map[string]any)) error {
	kind, name, err := kindOf(object)
	if err != nil {
		return err
	}
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return errors.New(withoutPrefixes(err))
	}
	content := map[string]any{}
	if err := utiljson.Unmarshal(text, &content); err != nil {
		return fmt.Errorf("is not an object: %w", err)
	}
	apiVersion, want := name.ToAPIVersionAndKind()
	if content["apiVersion"] != apiVersion || content["kind"] != want {
		return fmt.Errorf("apiVersion and kind: are %v and %v, must be %s and %s", content["apiVersion"],
			content["kind"], apiVersion, want)
	}
	unknown, err := kind.prune(content)
	if err != nil {
		return err
	}
	if len(unknown) > 0 {
		return fmt.Errorf("unknown field \"%s\"", strings.Join(unknown, `", unknown field "`))
	}
	spec, ok := content["spec"].(map[string]any)
	if ok && complete != nil {
		complete(spec)
	}
	return kind.admit(content, object)
}

// Admit sets the defaults of an object that was created in Go, and validates it.
func Admit(object Object) error {
	kind, name, err := kindOf(object)
	if err != nil {
		return err
	}
	content, err := contentOf(object, name)
	if err != nil {
		return err
	}
	return kind.admit(content, object)
}

// Default sets the defaults of an object that was created in Go, without validation.
func Default(object Object) error {
	kind, name, err := kindOf(object)
	if err != nil {
		return err
	}
	content, err := contentOf(object, name)
	if err != nil {
		return err
	}
	kind.setDefaults(content)
	return store(content, object)
}

// admit processes a new object like the API server: it sets defaults in content, validates it and
// writes it to object.
func (k *kind) admit(content map[string]any, object Object) error {
	delete(content, "status") // is written only by the operator
	k.setDefaults(content)
	meta := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	if meta.GetName() == "" && meta.GetGenerateName() != "" {
		meta.SetName(meta.GetGenerateName() + "xxxxx") // as long as what the API server appends
	}
	if meta.GetNamespace() == "" {
		meta.SetNamespace(metav1.NamespaceDefault) // as kubectl does
	}
	if errs := k.validate(meta.Object, meta); len(errs) > 0 {
		return &InvalidError{meta.GetKind(), meta.GetName(), errs}
	}
	return store(content, object)
}

var scheme = sync.OnceValues(func() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, v1alpha1.AddToScheme(s)
})

// kindOf returns the CRD of an object's kind, and the kind's name.
func kindOf(object Object) (*kind, schema.GroupVersionKind, error) {
	types, err := scheme()
	if err != nil {
		return nil, schema.GroupVersionKind{}, fmt.Errorf("build the scheme of %s: %w",
			v1alpha1.GroupVersion, err)
	}
	names, _, err := types.ObjectKinds(object)
	if err != nil {
		return nil, schema.GroupVersionKind{}, fmt.Errorf("find the kind of %T: %w", object, err)
	}
	found, err := kindNamed(names[0])
	return found, names[0], err
}

// contentOf converts an object to its JSON form.
func contentOf(object Object, name schema.GroupVersionKind) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encode the %s: %w", name.Kind, err)
	}
	content["apiVersion"], content["kind"] = name.ToAPIVersionAndKind()
	return content, nil
}

// store replaces object by content.
func store(content map[string]any, object Object) error {
	text, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode the object: %w", err)
	}
	reflect.ValueOf(object).Elem().SetZero()
	if err := json.Unmarshal(text, object); err != nil {
		return fmt.Errorf("decode into %T: %w", object, err)
	}
	return nil
}

// InvalidError is what is wrong with the fields of an object.
type InvalidError struct {
	Kind, Name string
	Fields     field.ErrorList
}

func (e *InvalidError) Error() string {
	return e.Format(FormatField)
}

// Format returns the message in the format of kubectl, with the text of each error by a function.
func (e *InvalidError) Format(text func(*field.Error) string) string {
	var lines []string
	for _, err := range e.Fields {
		lines = append(lines, text(err))
	}
	if len(lines) == 1 {
		return lines[0]
	}
	return fmt.Sprintf("the %s %q is invalid:\n* %s", e.Kind, e.Name, strings.Join(lines, "\n* "))
}

// FormatField returns the text of one error. A rule of the whole object has no field; its message
// names the fields.
func FormatField(err *field.Error) string {
	return strings.TrimPrefix(err.Error(), `<nil>: Invalid value: `)
}

// withoutPrefixes removes the prefixes of the YAML packages from an error.
func withoutPrefixes(err error) string {
	text := err.Error()
	for _, prefix := range []string{
		"error converting YAML to JSON: ", "yaml: ",
		"unmarshal errors:\n  ", "error unmarshaling JSON: ",
	} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}
