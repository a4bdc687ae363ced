package manifest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// rules are the CEL rules of a schema, as a tree of the schema's shape. The rules of a node are
// compiled on first use: compiling all rules of a kind takes longer than everything else, and an
// object has values for a few of them only.
type rules struct {
	own        func() *cel.Validator // of the rules of this node alone; nil = it has none
	properties map[string]*rules
	elements   *rules // of a list's items, or of a map's values
}

// newRules returns the rules in a schema, nil if there are none, and the schema without rules. root
// is whether it is the schema of a whole object.
func newRules(
	schema *structuralschema.Structural, root bool,
) (*rules, *structuralschema.Structural) {
	r, bare := &rules{}, *schema
	bare.XValidations = nil
	if len(schema.Properties) > 0 {
		bare.Properties = make(map[string]structuralschema.Structural, len(schema.Properties))
		r.properties = map[string]*rules{}
	}
	for name, property := range schema.Properties {
		below, without := newRules(&property, property.XEmbeddedResource)
		bare.Properties[name] = *without
		if below != nil {
			r.properties[name] = below
		}
	}
	if items := schema.Items; items != nil {
		r.elements, bare.Items = newRules(items, items.XEmbeddedResource)
	}
	values := schema.AdditionalProperties
	if values != nil && values.Structural != nil {
		bare.AdditionalProperties = &structuralschema.StructuralOrBool{}
		r.elements, bare.AdditionalProperties.Structural = newRules(values.Structural,
			values.Structural.XEmbeddedResource)
	}
	if own := bare; schema.XValidations != nil { // a rule may use all fields below its node
		own.XValidations = slices.DeleteFunc(
			slices.Clone([]apiextensionsv1.ValidationRule(schema.XValidations)), isTransition)
		r.own = sync.OnceValue(func() *cel.Validator {
			return cel.NewValidator(&own, root,
				celconfig.PerCallLimit)
		})
	}
	if r.own == nil && len(r.properties) == 0 && r.elements == nil {
		return nil, &bare
	}
	return r, &bare
}

// isTransition reports whether a rule compares a value with its predecessor, which a new object
// does not have.
func isTransition(rule apiextensionsv1.ValidationRule) bool {
	return strings.Contains(rule.Rule, "oldSelf") && rule.OptionalOldSelf == nil
}

// validate evaluates the rules of all values of a new object. budget is the remaining cost that
// they may have.
func (r *rules) validate(path *field.Path, value any, budget int64) (field.ErrorList, int64) {
	if r == nil || value == nil || budget < 0 {
		return nil, budget
	}
	var errs field.ErrorList
	if r.own != nil {
		errs, budget = r.own().Validate(context.Background(), path, nil, value, nil, budget)
	}
	below := func(rules *rules, path *field.Path, value any) {
		var more field.ErrorList
		more, budget = rules.validate(path, value, budget)
		errs = append(errs, more...)
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if property, ok := r.properties[key]; ok {
				below(property, path.Child(key), value[key])
			} else if r.elements != nil {
				below(r.elements, path.Key(key), value[key])
			}
		}
	case []any:
		for i := range value {
			below(r.elements, path.Index(i), value[i])
		}
	}
	return errs, budget
}
