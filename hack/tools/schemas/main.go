// Command schemas writes the schemas of the CustomResourceDefinitions in config/crd/bases to a
// folder, as JSON and without descriptions, for package manifest: reading the YAML would take a
// third of the CPU with which a command line starts.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: schemas BASES FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "schemas:", err)
		os.Exit(1)
	}
}

func write(bases, folder string) error {
	files, err := filepath.Glob(filepath.Join(bases, "*.yaml"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &definition); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		schemas := map[string]*apiextensionsv1.JSONSchemaProps{} // by version
		for _, version := range definition.Spec.Versions {
			schemas[version.Name] = version.Schema.OpenAPIV3Schema
			withoutDescriptions(version.Schema.OpenAPIV3Schema)
		}
		out, err := json.Marshal(schemas)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(file), ".yaml") + ".json"
		err = os.WriteFile(filepath.Join(folder, name), append(out, '\n'), 0o644)
		if err != nil {
			return err
		}
	}
	return nil
}

func withoutDescriptions(s *apiextensionsv1.JSONSchemaProps) {
	if s == nil {
		return
	}
	s.Description = ""
	for name, property := range s.Properties {
		withoutDescriptions(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		withoutDescriptions(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		withoutDescriptions(s.AdditionalProperties.Schema)
	}
}
