package manifest

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/config/crd"
)

// kind is one version of a CustomResourceDefinition.
type kind struct {
	structural *structuralschema.Structural
	values     validation.SchemaValidator
	rules      func() *cel.Validator // compiled on first use, which takes longer than everything else
}

// kinds are the kinds of the embedded CRDs.
var kinds = sync.OnceValues(readKinds)

func readKinds() (map[schema.GroupVersionKind]*kind, error) {
	files, err := fs.Glob(crd.Bases, "bases/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the embedded CRDs: %w", err)
	}
	found := map[schema.GroupVersionKind]*kind{}
	for _, file := range files {
		text, err := crd.Bases.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the embedded CRD %s: %w", file, err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &definition); err != nil {
			return nil, fmt.Errorf("decode the embedded CRD %s: %w", file, err)
		}
		spec := &definition.Spec
		for _, version := range spec.Versions {
			name := schema.GroupVersionKind{Group: spec.Group, Version: version.Name, Kind: spec.Names.Kind}
			if found[name], err = newKind(version.Schema); err != nil {
				return nil, fmt.Errorf("read the schema of %s in the embedded CRD %s: %w", version.Name, file, err)
			}
		}
	}
	return found, nil
}

func newKind(from *apiextensionsv1.CustomResourceValidation) (*kind, error) {
	var internal apiextensions.CustomResourceValidation
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(from, &internal, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, err
	}
	values, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	return &kind{structural: structural, values: values, rules: sync.OnceValue(func() *cel.Validator {
		return cel.NewValidator(structural, true, celconfig.PerCallLimit)
	})}, nil
}

// prune removes unknown fields from content, and nulls of fields that are not nullable, and returns the paths of the unknown fields.
func (k *kind) prune(content map[string]any) ([]string, error) {
	_, _, unknown, err := objectmeta.GetObjectMetaWithOptions(content, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, fmt.Errorf("metadata: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	unknown = append(unknown, pruning.PruneWithOptions(content, k.structural, true, options)...)
	defaulting.PruneNonNullableNullsWithoutDefaults(content, k.structural)
	return unknown, nil
}

func (k *kind) setDefaults(content map[string]any) { defaulting.Default(content, k.structural) }

// validate checks a defaulted object, in the order of the API server: rules are evaluated only on values of the right types.
func (k *kind) validate(content map[string]any, meta metav1.Object) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaAccessor(meta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, validation.ValidateCustomResource(nil, content, k.values)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, content)...)
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return errs
		}
	}
	broken, _ := k.rules().Validate(context.Background(), nil, k.structural, content, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}
