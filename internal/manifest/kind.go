package manifest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/redquake/redquake/config/crd"
)

// kind is one version of a CustomResourceDefinition.
type kind struct {
	structural *structuralschema.Structural
	values     validation.SchemaValidator
	rules      *rules
}

// kinds are the kinds that were used so far, by their schema.GroupVersionKind: functions that
// return a *kind and an error.
var kinds sync.Map

// kindNamed returns a kind from the embedded schema of its CRD.
func kindNamed(name schema.GroupVersionKind) (*kind, error) {
	read, _ := kinds.LoadOrStore(name,
		sync.OnceValues(func() (*kind, error) { return readKind(name) }))
	return read.(func() (*kind, error))()
}

// readKind reads the schema of one kind only: decoding them takes most of the time that a command line takes to
// start.
func readKind(name schema.GroupVersionKind) (*kind, error) {
	plural, _ := meta.UnsafeGuessKindToResource(name)
	file := fmt.Sprintf("schemas/%s_%s.json", name.Group, plural.Resource) // as controller-gen names it
	text, err := crd.Schemas.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("no CustomResourceDefinition defines %s: %w", name, err)
	}
	var schemas map[string]*apiextensionsv1.JSONSchemaProps // by version
	if err := json.Unmarshal(text, &schemas); err != nil {
		return nil, fmt.Errorf("decode the embedded schemas %s: %w", file, err)
	}
	from, ok := schemas[name.Version]
	if !ok {
		return nil, fmt.Errorf("no CustomResourceDefinition defines %s", name)
	}
	found, err := newKind(from)
	if err != nil {
		return nil, fmt.Errorf("read the schema of %s in %s: %w", name.Version, file, err)
	}
	return found, nil
}

func newKind(from *apiextensionsv1.JSONSchemaProps) (*kind, error) {
	var internal apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(from, &internal,
		nil)
	if err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, err
	}
	values, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return nil, err
	}
	rules, _ := newRules(structural, true)
	return &kind{
		structural: structural,
		values:     values,
		rules:      rules,
	}, nil
}

// prune removes unknown fields from content, and nulls of fields that are not nullable, and returns
// the paths of the unknown fields.
func (k *kind) prune(content map[string]any) ([]string, error) {
	_, _, unknown, err := objectmeta.GetObjectMetaWithOptions(content, objectmeta.ObjectMetaOptions{
		ReturnUnknownFieldPaths: true,
	})
	if err != nil {
		return nil, fmt.Errorf("metadata: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	unknown = append(unknown, pruning.PruneWithOptions(content, k.structural, true, options)...)
	defaulting.PruneNonNullableNullsWithoutDefaults(content, k.structural)
	return unknown, nil
}

func (k *kind) setDefaults(content map[string]any) {
	defaulting.Default(content, k.structural)
}

// validate checks a defaulted object, in the order of the API server: rules are evaluated only on
// values of the right types. A rule on a value that is invalid by itself adds nothing, as it often
// cannot be evaluated.
func (k *kind) validate(content map[string]any, object metav1.Object) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaAccessor(object, true, apivalidation.NameIsDNSSubdomain,
		field.NewPath("metadata"))
	errs = append(errs, validation.ValidateCustomResource(nil, content, k.values)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, content)...)
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong,
			field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return errs
		}
	}
	broken, _ := k.rules.validate(nil, content, celconfig.RuntimeCELCostBudget)
	return append(errs, slices.DeleteFunc(broken, func(rule *field.Error) bool {
		return slices.ContainsFunc(errs, func(err *field.Error) bool { return err.Field == rule.Field })
	})...)
}
