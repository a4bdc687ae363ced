// Package policy is what the administrators of a cluster permit: how many faults may act at once,
// how many nodes they may taint, and what is forbidden in which namespaces. It is pure: the text of
// a policy in, decisions out.
package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Where a policy is: a ConfigMap in the operator's namespace, with one key.
const (
	ConfigMap = "redquake-policy"
	Key       = "policy.yaml"
)

// Version is the version of the format that this operator reads.
const Version = "v1alpha1"

// All in a list stands for everything.
const All = "*"

// DefaultMaxTaintedNodes applies where a policy does not set the limit, and without a policy.
const DefaultMaxTaintedNodes = 1

// The most that a limit can be.
const maxLimit = 10_000

// Policy is the content of the key. Unknown fields are refused.
type Policy struct {
	Version string `yaml:"version"`
	// MaxFaults is how many faults may act at once in all namespaces; nil = any number.
	MaxFaults *int `yaml:"maxFaults"`
	// MaxTaintedNodes is how many nodes faults may have tainted at once; nil = DefaultMaxTaintedNodes.
	MaxTaintedNodes *int   `yaml:"maxTaintedNodes"`
	Rules           []Rule `yaml:"rules"`
}

// Rule is what applies to the faults of some namespaces.
type Rule struct {
	Name       string     `yaml:"name"`
	Namespaces Namespaces `yaml:"namespaces"`
	// MaxFaults is how many faults may act at once in each of the namespaces; nil = any number.
	MaxFaults *int   `yaml:"maxFaults"`
	Forbid    Forbid `yaml:"forbid"`
}

// Namespaces selects namespaces by their names, or by their labels.
type Namespaces struct {
	Names    []string `yaml:"names"`    // All is every namespace
	Selector string   `yaml:"selector"` // as kubectl's --selector
	matches  labels.Selector
}

// Forbid is what is forbidden.
type Forbid struct {
	Faults []string `yaml:"faults"` // types; All is every type
	Allow  []string `yaml:"allow"`  // members of spec.allow; All is every member
}

// allowances are the members of spec.allow.
var allowances = []string{
	string(v1alpha1.AllowAllCopies), string(v1alpha1.AllowDataLoss),
	string(v1alpha1.AllowMajorityOfSentinels), string(v1alpha1.AllowMajorityOfPrimaries),
	string(v1alpha1.AllowTooFewCores),
	string(v1alpha1.AllowEviction), string(v1alpha1.AllowExpiry),
}

// Default is the policy of a cluster whose administrators have set none.
func Default() *Policy {
	return &Policy{Version: Version}
}

// Parse reads a policy. faults are the types of faults that exist. An error names the line or the
// field.
func Parse(text string, faults []v1alpha1.FaultType) (*Policy, error) {
	p := &Policy{}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(p); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("it is empty: version must be %s", Version)
	} else if err != nil {
		return nil, readable(err)
	}
	err := decoder.Decode(&struct{}{})
	if !errors.Is(err, io.EOF) {
		return nil, errors.New("it has more than one document")
	}
	var written yaml.Node
	err = yaml.Unmarshal([]byte(text), &written)
	if err != nil {
		return nil, readable(err)
	}
	if err := checkValues(&written); err != nil {
		return nil, err
	}
	known := make([]string, len(faults))
	for i, fault := range faults {
		known[i] = string(fault)
	}
	return p, p.check(known)
}

var goType = regexp.MustCompile(` (not found in|into) (type )?[*\[\]]*[a-z]\S*`)

// readable is a decoder's error on one line, without the names of Go types.
func readable(err error) error {
	text := err.Error()
	if wrong, ok := errors.AsType[*yaml.TypeError](err); ok {
		text = strings.Join(wrong.Errors, "; ")
	}
	text = goType.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, " not found in") {
			return " is unknown"
		}
		return " where another type is expected"
	})
	return errors.New(strings.TrimPrefix(text, "yaml: "))
}

// checkValues refuses what the decoder reads as something else: a missing value as no limit, a
// fraction as a whole number.
func checkValues(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		switch node.ShortTag() {
		case "!!null":
			return fmt.Errorf("line %d: a value is missing", node.Line)
		case "!!float":
			return fmt.Errorf("line %d: %s is no whole number", node.Line, node.Value)
		}
	}
	for _, part := range node.Content {
		if err := checkValues(part); err != nil {
			return err
		}
	}
	return nil
}

// check checks what the types do not, and prepares the selectors.
func (p *Policy) check(faults []string) error {
	if p.Version != Version {
		return fmt.Errorf("version is %q, must be %s", p.Version, Version)
	}
	err := cmp.Or(checkLimit("maxFaults", p.MaxFaults),
		checkLimit("maxTaintedNodes", p.MaxTaintedNodes))
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for i := range p.Rules {
		rule, field := &p.Rules[i], fmt.Sprintf("rules[%d]", i)
		switch {
		case rule.Name == "":
			return fmt.Errorf("%s.name is missing: refusals name the rule by it", field)
		case names[rule.Name]:
			return fmt.Errorf("%s.name: there is another rule %q", field, rule.Name)
		}
		names[rule.Name] = true
		err := cmp.Or(
			rule.Namespaces.check(field+".namespaces"), checkLimit(field+".maxFaults", rule.MaxFaults),
			checkNames(field+".forbid.faults", rule.Forbid.Faults, faults),
			checkNames(field+".forbid.allow", rule.Forbid.Allow, allowances),
		)
		if err != nil {
			return err
		}
		if rule.MaxFaults == nil && len(rule.Forbid.Faults)+len(rule.Forbid.Allow) == 0 {
			return fmt.Errorf(
				"%s (%s) limits and forbids nothing: set maxFaults, forbid.faults or forbid.allow", field,
				rule.Name)
		}
	}
	return nil
}

func checkLimit(field string, limit *int) error {
	if limit != nil && (*limit < 0 || *limit > maxLimit) {
		return fmt.Errorf("%s is %d, must be between 0 and %d", field, *limit, maxLimit)
	}
	return nil
}

func checkNames(field string, names, known []string) error {
	for i, name := range names {
		if name != All && !slices.Contains(known, name) {
			return fmt.Errorf("%s[%d]: %q is unknown; use %s or %s", field, i, name,
				strings.Join(known, ", "), All)
		}
	}
	return nil
}

func (n *Namespaces) check(field string) error {
	if len(n.Names) == 0 && n.Selector == "" {
		return fmt.Errorf("%s selects none: set names (%q is every namespace) or selector", field, All)
	}
	for i, name := range n.Names {
		problems := validation.IsDNS1123Label(name)
		if name != All && len(problems) > 0 {
			return fmt.Errorf("%s.names[%d]: %q is no name of a namespace: %s", field, i, name, problems[0])
		}
	}
	n.matches = labels.Nothing()
	if n.Selector == "" {
		return nil
	}
	selector, err := labels.Parse(n.Selector)
	if err != nil {
		return fmt.Errorf("%s.selector: %w", field, err)
	}
	n.matches = selector
	return nil
}
