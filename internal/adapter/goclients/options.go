package goclients

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/adapter/wire"
)

var durations = reflect.TypeFor[time.Duration]()

// assign sets the fields of a library's own struct of options, to which target points, by their
// names. Durations are texts such as 500ms. taken are the fields that the settings determine.
func assign(target any, options map[string]any, taken []string) *wire.Refusal {
	return assignAll(reflect.ValueOf(target).Elem(), "options", options, taken)
}

func assignAll(
	to reflect.Value, path string, options map[string]any, taken []string,
) *wire.Refusal {
	for _, name := range slices.Sorted(maps.Keys(options)) {
		here := path + "." + name
		field := to.FieldByName(name)
		switch {
		case slices.Contains(taken, name) && path == "options":
			return invalid(here, "is set by the target")
		case !field.IsValid() || !field.CanSet():
			return invalid(here, fmt.Sprintf("%s has no such field", to.Type()))
		}
		if field.Kind() == reflect.Pointer && field.Type().Elem().Kind() == reflect.Struct {
			field.Set(reflect.New(field.Type().Elem()))
			field = field.Elem()
		}
		if field.Kind() == reflect.Struct {
			nested, ok := options[name].(map[string]any)
			if !ok {
				return invalid(here, "is an object with the fields of "+field.Type().String())
			}
			if refusal := assignAll(field, here, nested, taken); refusal != nil {
				return refusal
			}
			continue
		}
		if err := set(field, options[name]); err != nil {
			return invalid(here, err.Error())
		}
	}
	return nil
}

func invalid(field, message string) *wire.Refusal {
	return &wire.Refusal{Kind: wire.Invalid, Field: field, Message: message}
}

// set sets a field that is no struct.
func set(field reflect.Value, value any) error {
	if field.Type() == durations {
		text, ok := value.(string)
		if !ok {
			return errors.New("is a duration, a text such as 500ms")
		}
		d, err := time.ParseDuration(text)
		field.SetInt(int64(d))
		return err
	}
	switch field.Kind() {
	case reflect.Bool, reflect.String, reflect.Slice,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
	default:
		return fmt.Errorf("is a %s, which cannot be given", field.Type())
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, field.Addr().Interface()); err != nil {
		return fmt.Errorf("is a %s, not %s", field.Type(), text)
	}
	return nil
}

// inForce lists the scalar fields of the struct to which used points, without those taken.
func inForce(used any, taken []string) map[string]string {
	all := map[string]string{}
	list(all, "", reflect.ValueOf(used).Elem(), taken)
	return all
}

func list(all map[string]string, path string, of reflect.Value, taken []string) {
	for i := range of.NumField() {
		f, v := of.Type().Field(i), of.Field(i)
		if !f.IsExported() || path == "" && slices.Contains(taken, f.Name) {
			continue
		}
		if v.Kind() == reflect.Pointer && !v.IsNil() {
			v = v.Elem()
		}
		switch {
		case v.Kind() == reflect.Struct:
			list(all, path+f.Name+".", v, taken)
		case v.CanInt(), v.CanUint(), v.CanFloat(), v.Kind() == reflect.Bool, v.Kind() == reflect.String:
			all[path+f.Name] = fmt.Sprint(v.Interface())
		}
	}
}

// bounded leaves out what the protocol has no room for.
func bounded(options map[string]string) map[string]string {
	kept := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if len(kept) < 200 {
			kept[cut(name, 256)] = cut(options[name], 256)
		}
	}
	return kept
}

// cut shortens a text to so many bytes, and to what is UTF-8.
func cut(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "")
}

// tlsConfig returns nil without TLS.
func tlsConfig(t *wire.TLS) (*tls.Config, *wire.Refusal) {
	if t == nil {
		return nil, nil
	}
	c := &tls.Config{
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.Insecure, //nolint:gosec // explicitly requested by the user
		MinVersion:         tls.VersionTLS12,
	}
	if t.CA != "" {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM([]byte(t.CA)) {
			return nil, invalid("tls.ca", "has no certificate in PEM")
		}
	}
	if t.Certificate != "" || t.Key != "" {
		pair, err := tls.X509KeyPair([]byte(t.Certificate), []byte(t.Key))
		if err != nil {
			return nil, invalid(cmp.Or(map[bool]string{true: "tls.key"}[t.Key == ""], "tls.certificate"), err.Error())
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
