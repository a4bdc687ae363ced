package conventions

import (
	"fmt"
	"slices"
	"strings"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// finding is one violation of a rule at one path of a schema.
type finding struct{ path, rule string }

func (f finding) String() string { return f.path + ": " + f.rule }

// The rules, as findings name them.
const (
	ruleNoNumber       = "type number: no floating point in an API, use an integer with a unit, a Quantity or text"
	ruleListType       = "a list without x-kubernetes-list-type: server-side apply cannot merge it"
	ruleListMapKeys    = "a list of type map without keys"
	ruleMaxItems       = "a list without maxItems"
	ruleStringBounded  = "a string without maxLength, enum or format"
	ruleIntegerBounded = "an integer of the spec without minimum and maximum"
	ruleMapValues      = "a map to something other than strings"
	ruleMapBounded     = "a map without maxProperties"
	ruleNoPhase        = "a phase: use conditions for the state of an object"
	ruleDescribed      = "no description"
	ruleDescribedName  = "the description does not start with the field's JSON name"
	ruleFreeForm       = "an object without properties, or with unknown fields preserved"
)

// findings walks a schema and returns every violation. path is that of the schema itself: "" at the root,
// "spec.load.stages[]" below.
func findings(path string, s apiext.JSONSchemaProps) []finding {
	var out []finding
	add := func(rule string) { out = append(out, finding{path, rule}) }

	switch {
	case s.XIntOrString: // quantities and similar types: the API server limits them by parsing
	case s.Type == "number":
		add(ruleNoNumber)
	case s.Type == "string":
		if s.MaxLength == nil && len(s.Enum) == 0 && s.Format == "" {
			add(ruleStringBounded)
		}
	case s.Type == "integer":
		if inSpec(path) && (s.Minimum == nil || s.Maximum == nil) {
			add(ruleIntegerBounded)
		}
	case s.Type == "array":
		if s.XListType == nil {
			add(ruleListType)
		} else if *s.XListType == "map" && len(s.XListMapKeys) == 0 {
			add(ruleListMapKeys)
		}
		if s.MaxItems == nil {
			add(ruleMaxItems)
		}
	case s.Type == "object" && s.AdditionalProperties != nil:
		if v := s.AdditionalProperties.Schema; v == nil || (v.Type != "string" && !v.XIntOrString) {
			add(ruleMapValues)
		}
		if s.MaxProperties == nil {
			add(ruleMapBounded)
		}
	case s.Type == "object":
		preserves := s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
		if preserves || len(s.Properties) == 0 {
			add(ruleFreeForm)
		}
	}

	for _, name := range sortedNames(s.Properties) {
		property := s.Properties[name]
		at := strings.TrimPrefix(path+"."+name, ".")
		if strings.HasSuffix(strings.ToLower(name), "phase") { // the phases of a recovery are no state of the object
			out = append(out, finding{at, ruleNoPhase})
		}
		if fromKubernetes(at) {
			continue
		}
		if property.Description == "" {
			out = append(out, finding{at, ruleDescribed})
		} else if !startsWithName(property.Description, name) {
			out = append(out, finding{at, ruleDescribedName})
		}
		out = append(out, findings(at, property)...)
	}
	if s.Items != nil && s.Items.Schema != nil {
		out = append(out, findings(path+"[]", *s.Items.Schema)...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		out = append(out, findings(path+"{}", *s.AdditionalProperties.Schema)...)
	}
	return out
}

func inSpec(path string) bool { return path == "spec" || strings.HasPrefix(path, "spec.") }

// fromKubernetes reports whether a field is one that every object has.
func fromKubernetes(path string) bool {
	return path == "apiVersion" || path == "kind" || path == "metadata"
}

// startsWithName accepts "rate in requests" and "pod's name", not "rates are".
func startsWithName(description, name string) bool {
	rest, ok := strings.CutPrefix(description, name)
	return ok && (rest == "" || !isWordByte(rest[0]))
}

func isWordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_'
}

func sortedNames(m map[string]apiext.JSONSchemaProps) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// column is one column of `kubectl get`; priority 1 needs -o wide.
type column struct {
	name     string
	priority int32
}

// shape is the public interface of a kind in addition to its schema.
type shape struct {
	kind, shortName string
	columns         []column
}

// shapeFindings compares a CRD with the shape of its kind.
func shapeFindings(crd *apiext.CustomResourceDefinition, want shape) []string {
	var out []string
	bad := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }

	if got := crd.Spec.Names.ShortNames; !slices.Equal(got, []string{want.shortName}) {
		bad("short names %v, want [%s]", got, want.shortName)
	}
	if got := crd.Spec.Names.Categories; !slices.Equal(got, []string{"redquake"}) {
		bad("categories %v, want [redquake]: a separate category, not all", got)
	}
	if crd.Spec.Scope != apiext.NamespaceScoped {
		bad("scope %s, want Namespaced", crd.Spec.Scope)
	}
	if crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiext.WebhookConverter {
		bad("a conversion webhook")
	}
	storage := 0
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			storage++
		}
		if v.Subresources == nil || v.Subresources.Status == nil {
			bad("%s has no status subresource", v.Name)
		}
		var got []column
		for _, c := range v.AdditionalPrinterColumns {
			got = append(got, column{c.Name, c.Priority})
		}
		if !slices.Equal(got, want.columns) {
			bad("%s has the columns %v, want %v", v.Name, got, want.columns)
		}
		status, ok := v.Schema.OpenAPIV3Schema.Properties["status"]
		if !ok || status.Default == nil || string(status.Default.Raw) != `{"observedGeneration":-1}` {
			bad("%s: status lacks the default {\"observedGeneration\":-1}: tools would consider a new object current", v.Name)
		}
		if !slices.Equal(v.Schema.OpenAPIV3Schema.Required, []string{"spec"}) {
			bad("%s requires %v, want [spec]", v.Name, v.Schema.OpenAPIV3Schema.Required)
		}
	}
	if storage != 1 {
		bad("%d storage versions, want 1", storage)
	}
	return out
}
