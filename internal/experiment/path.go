package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"
)

// maxValue is the longest text of a value.
const maxValue = 1024

// set sets the field at a path of a spec, and decodes the result into a spec of the same type. The
// error says what is wrong, without the field of the experiment that asked for it, and without the
// value, which may be a secret.
func set[T any](spec *T, path string, value intstr.IntOrString) (*T, error) {
	steps := strings.Split(path, ".")
	kind, err := typeAt(reflect.TypeFor[T](), steps)
	if err != nil {
		return nil, err
	}
	v, err := jsonOf(kind, value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	var tree any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &tree); err != nil {
		return nil, err
	}
	if tree, err = put(tree, steps, v); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if text, err = json.Marshal(tree); err != nil {
		return nil, err
	}
	changed := new(T)
	switch strict, err := kjson.UnmarshalStrict(text, changed); {
	case err != nil:
		return nil, fmt.Errorf("%s: the field does not take such a value (it is %s)", path,
			described(kind))
	case len(strict) > 0:
		return nil, fmt.Errorf("%s: %w", path, strict[0])
	}
	return changed, nil
}

// described is what a field is.
func described(kind reflect.Type) string {
	switch {
	case kind == reflect.TypeFor[metav1.Duration]():
		return "a duration, such as 30s"
	case kind == reflect.TypeFor[resource.Quantity]():
		return "a quantity, such as 500m or 1Gi"
	case isText(kind):
		return "a text"
	}
	switch kind.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a number"
}

// typeAt is the type of the field at a path.
func typeAt(of reflect.Type, steps []string) (reflect.Type, error) {
	for i, step := range steps {
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		at := strings.Join(steps[:i], ".")
		switch {
		case isText(of):
			return nil, fmt.Errorf("%s has no fields", at)
		case of.Kind() == reflect.Struct:
			fields := fieldsOf(of)
			next, known := fields[step]
			if !known {
				return nil, fmt.Errorf("there is no field %s%s: %s", step, within(at), listed(fields))
			}
			of = next
		case of.Kind() == reflect.Slice:
			if n, err := strconv.Atoi(step); err != nil || n < 0 {
				return nil, fmt.Errorf("%s is a list: an item is named by its position, from 0, and not %s", at,
					step)
			}
			of = of.Elem()
		case of.Kind() == reflect.Map:
			of = of.Elem()
		default:
			return nil, fmt.Errorf("%s has no fields", at)
		}
	}
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of, nil
}

func within(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}

func listed(fields map[string]reflect.Type) string {
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return "it has " + strings.Join(names, ", ")
}

// fieldsOf are the fields of a struct by their names in JSON.
func fieldsOf(of reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range of.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && strings.Contains(options, "inline"):
			for n, t := range fieldsOf(f.Type) {
				fields[n] = t
			}
		case name != "" && name != "-":
			fields[name] = f.Type
		}
	}
	return fields
}

// isText reports whether a type is a text in JSON.
func isText(of reflect.Type) bool {
	return of.Kind() == reflect.String || of == reflect.TypeFor[metav1.Duration]() ||
		of == reflect.TypeFor[resource.Quantity]() || of == reflect.TypeFor[metav1.Time]()
}

// jsonOf is a value as a field of a type takes it.
func jsonOf(of reflect.Type, value intstr.IntOrString) (any, error) {
	text := value.String()
	if len(text) > maxValue {
		return nil, fmt.Errorf("a value has %d characters, more than %d", len(text), maxValue)
	}
	if value.Type == intstr.String && text == "null" {
		return nil, nil
	}
	if isText(of) {
		return text, nil
	}
	if of == reflect.TypeFor[intstr.IntOrString]() {
		return value, nil
	}
	var v any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &v); err != nil {
		return nil, errors.New(
			"the value is no JSON, which a field that is neither a text nor a number needs")
	}
	return v, nil
}

// put sets a value in a tree of JSON; nil removes a field.
func put(tree any, steps []string, v any) (any, error) {
	if len(steps) == 0 {
		return v, nil
	}
	step, rest := steps[0], steps[1:]
	if list, is := tree.([]any); is {
		return putItem(list, step, rest, v)
	}
	fields, is := tree.(map[string]any)
	if !is {
		if position, err := strconv.Atoi(step); err == nil && tree == nil {
			return putItem(nil, strconv.Itoa(position), rest, v)
		}
		fields = map[string]any{}
	}
	below, err := put(fields[step], rest, v)
	if err != nil {
		return nil, err
	}
	if below == nil {
		delete(fields, step)
	} else {
		fields[step] = below
	}
	return fields, nil
}

func putItem(list []any, step string, rest []string, v any) (any, error) {
	position, err := strconv.Atoi(step)
	if err != nil || position > len(list) {
		return nil, fmt.Errorf("the list has %d items: %s is none of their positions, nor the next",
			len(list), step)
	}
	var old any
	if position < len(list) {
		old = list[position]
	}
	item, err := put(old, rest, v)
	switch {
	case err != nil:
		return nil, err
	case item == nil && position < len(list):
		return slices.Delete(list, position, position+1), nil
	case item == nil:
		return list, nil
	case position == len(list):
		return append(list, item), nil
	}
	list[position] = item
	return list, nil
}
