package policy

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Limit is how many faults may act at once, or how many nodes they may have tainted at once.
type Limit struct {
	Of    v1alpha1.PolicyLimit
	Max   int
	Entry string // of the policy, such as maxFaults
}

// NeedsLabels reports whether what applies to a namespace depends on its labels.
func (p *Policy) NeedsLabels() bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Namespaces.Selector != "" })
}

// Refusal says which entry of the policy forbids a fault in a namespace with these labels; "" =
// none does.
func (p *Policy) Refusal(
	namespace string, has map[string]string, spec *v1alpha1.RedisFaultSpec,
) string {
	for i := range p.Rules {
		rule := &p.Rules[i]
		if !rule.Namespaces.has(namespace, has) {
			continue
		}
		kind := string(spec.Action.Type)
		if forbids(rule.Forbid.Faults, kind) {
			return fmt.Sprintf(
				"spec.action.type: %s is forbidden in namespace %s by rule %q (rules[%d].forbid.faults)", kind,
				namespace, rule.Name, i)
		}
		for _, allowance := range spec.Allow {
			if forbids(rule.Forbid.Allow, string(allowance)) {
				return fmt.Sprintf(
					"spec.allow: %s is forbidden in namespace %s by rule %q (rules[%d].forbid.allow)", allowance,
					namespace, rule.Name, i)
			}
		}
	}
	return ""
}

// Limits are the limits for the faults of a namespace with these labels: of several of a kind the
// lowest.
func (p *Policy) Limits(namespace string, has map[string]string) []Limit {
	nodes := Limit{
		Of:    v1alpha1.LimitTaintedNodes,
		Max:   DefaultMaxTaintedNodes,
		Entry: "maxTaintedNodes",
	}
	if p.MaxTaintedNodes != nil {
		nodes.Max = *p.MaxTaintedNodes
	}
	limits := []Limit{nodes}
	if p.MaxFaults != nil {
		limits = append(limits, Limit{
			Of:    v1alpha1.LimitFaults,
			Max:   *p.MaxFaults,
			Entry: "maxFaults",
		})
	}
	var within *Limit
	for i := range p.Rules {
		rule := &p.Rules[i]
		if rule.MaxFaults == nil || !rule.Namespaces.has(namespace, has) ||
			within != nil && within.Max <= *rule.MaxFaults {
			continue
		}
		within = &Limit{
			Of:    v1alpha1.LimitNamespaceFaults,
			Max:   *rule.MaxFaults,
			Entry: fmt.Sprintf("rule %q, rules[%d].maxFaults", rule.Name, i),
		}
	}
	if within != nil {
		limits = append(limits, *within)
	}
	return limits
}

func forbids(list []string, name string) bool {
	return slices.Contains(list, All) || slices.Contains(list, name)
}

func (n *Namespaces) has(name string, has map[string]string) bool {
	return slices.Contains(n.Names, All) || slices.Contains(n.Names, name) ||
		n.Selector != "" && n.matches.Matches(labels.Set(has))
}
