// Package doctor says whether a cluster is ready for load tests and faults, and what each kind of
// fault would need. Gather asks the API server, Judge is pure.
package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/policy"
	"github.com/redquake/redquake/internal/rights"
)

// Status is the result of a check.
type Status string

// The results.
const (
	OK      Status = "OK"
	Note    Status = "Note"    // something does less than it could
	Missing Status = "Missing" // what is checked does not work
	Unknown Status = "Unknown" // the user may not ask
)

// Version is the version of Report's JSON: it increases when a field is renamed, removed or means
// something else.
const Version = 1

// Report is the answer of redquake doctor. Its JSON is described in docs/cli.md.
type Report struct {
	Version   int     `json:"version"`
	Namespace string  `json:"namespace"`
	Ready     bool    `json:"ready"` // load tests can run, and so can each fault that was asked for
	Checks    []Check `json:"checks"`
	Faults    []Fault `json:"faults"`
}

// Check is one thing that was looked at.
type Check struct {
	Name     string `json:"name"`
	Status   Status `json:"status"`
	Detail   string `json:"detail"`
	Required bool   `json:"required,omitempty"` // without it nothing runs
}

// Fault is a kind of fault by one engine.
type Fault struct {
	Type   v1alpha1.FaultType `json:"type"`
	Engine v1alpha1.Engine    `json:"engine"`
	Status Status             `json:"status"`
	Detail []string           `json:"detail,omitempty"` // what is missing or unknown
	Needs  []string           `json:"needs,omitempty"`  // of its user, in the namespace
}

// Judge says what the facts mean. wanted are the types of faults that must be possible.
func Judge(f *Facts, wanted []v1alpha1.FaultType) *Report {
	r := &Report{
		Version:   Version,
		Namespace: f.Namespace,
		Ready:     true,
	}
	r.Checks = []Check{
		f.kubernetes(), f.kinds(), f.policies(), f.operator(), f.watched(),
		f.user("load tests", rights.CreateLoadTests, rights.RunJobs),
		f.user("faults", rights.CreateFaults),
		f.namespace(), f.clusterPolicy(), f.nodes(), f.storage(), f.podMetrics(), f.chaosMesh(),
	}
	for _, c := range r.Checks {
		r.Ready = r.Ready && (c.Status != Missing || !c.Required)
	}
	for _, kind := range declared.All {
		r.Faults = append(r.Faults, f.fault(&kind))
	}
	for _, typ := range wanted {
		possible := slices.ContainsFunc(r.Faults, func(f Fault) bool {
			return f.Type == typ &&
				f.Status != Missing
		})
		r.Ready = r.Ready && possible
	}
	return r
}

// fault judges a kind of fault: is it switched on, permitted by the policy, to its user and to the
// operator, and is its engine there?
func (f *Facts) fault(kind *declared.Kind) Fault {
	out := Fault{
		Type:   kind.Type,
		Engine: kind.Engine,
		Status: OK,
	}
	note := func(status Status, format string, args ...any) {
		out.Detail = append(out.Detail, fmt.Sprintf(format, args...))
		if out.Status != Missing {
			out.Status = status
		}
	}
	out.Needs = f.userMay(kind, note)
	if len(f.Managers) > 0 {
		on := f.Managers[0].On()
		if !slices.Contains(on, kind.Type) {
			note(Missing, "it is switched off by the operator's --faults")
		}
	}
	f.permitted(kind, note)
	if kind.Engine == v1alpha1.EngineChaosMesh && f.ChaosMesh.Unasked == "" {
		resource := kind.Needs[0].Resource
		if !slices.Contains(f.ChaosMesh.Resources, resource) {
			note(Missing, "Chaos Mesh is not installed, or has no %s", resource)
		}
	}
	if kind.Attached && !slices.ContainsFunc(f.Classes, func(c Class) bool { return c.Attaches }) &&
		f.ClassesUnasked == "" {
		note(Missing, "no storage class attaches its volumes to nodes")
	}
	if kind.Moves && f.Nodes.Unasked == "" && f.Nodes.Schedulable < 2 {
		note(Note, "the cluster has one schedulable node: pods cannot move")
	}
	return out
}

// userMay notes what the user may not do, and returns what the kind needs.
func (f *Facts) userMay(kind *declared.Kind, note func(Status, string, ...any)) (needs []string) {
	var lacks, unknown []string
	for _, need := range kind.Needs {
		text := need.String()
		if need.Unless != nil {
			text += " (" + need.Unless.Otherwise() + ")"
		}
		needs = append(needs, text)
		switch allowed, known := f.allowed(f.User, need); {
		case !known:
			unknown = append(unknown, text)
		case !allowed:
			lacks = append(lacks, text)
		}
	}
	if len(lacks) > 0 {
		note(Missing, "you may not %s", strings.Join(lacks, ", "))
	}
	if len(unknown) > 0 {
		note(Unknown, "not known: whether you may %s", strings.Join(unknown, ", "))
	}
	return needs
}

// permitted notes what the operator may not do, and what the policy of the cluster forbids.
func (f *Facts) permitted(kind *declared.Kind, note func(Status, string, ...any)) {
	spec := v1alpha1.RedisFaultSpec{Engine: kind.Engine, Action: v1alpha1.Action{Type: kind.Type}}
	lacks, unknown := map[bool][]string{}, false // by whether the resource is cluster-scoped
	for _, right := range kind.Rights(&spec.Action) {
		allowed, ok := f.Operator[right]
		if unknown = unknown || !ok; ok && !allowed {
			lacks[right.Cluster] = append(lacks[right.Cluster], right.String())
		}
	}
	if len(lacks[false]) > 0 {
		note(Missing, "the operator may not %s: bind the role %s%s", strings.Join(lacks[false], ", "),
			rights.Prefix, kind.RoleName(false))
	}
	if len(lacks[true]) > 0 {
		note(Missing, "the operator may not %s: %s", strings.Join(lacks[true], ", "), kind.Granting())
	}
	if unknown {
		note(Unknown, "not known: what else the operator may do")
	}
	if f.Policy != nil {
		why := f.Policy.Refusal(f.Namespace, f.Labels, &spec)
		if why != "" {
			note(Missing, "the cluster's policy: %s", why)
		}
	}
}

// allowed reports whether rights fulfil a need.
func (f *Facts) allowed(has map[rights.Right]bool, need rights.Need) (allowed, known bool) {
	allowed, known = has[need.Right]
	if need.Or != nil && !allowed {
		if other, ok := has[*need.Or]; ok {
			return other, true
		}
	}
	return allowed, known
}

// parsePolicy reads a policy.
func parsePolicy(text string) (*policy.Policy, error) {
	return policy.Parse(text, declared.Types())
}
