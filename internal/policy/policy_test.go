package policy

import (
	"os"
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
)

var kinds = []v1alpha1.FaultType{v1alpha1.FaultPodKill, v1alpha1.FaultHang}

// A policy is read strictly: every mistake is an error that names the line or the field.
func TestParse(t *testing.T) {
	const start = "version: v1alpha1\n"
	rule := func(text string) string {
		return start + "rules:\n- name: shops\n  namespaces: {names: [shop]}\n  " + text + "\n"
	}
	for _, tc := range []struct{ name, text, want string }{
		{"the least", start, ""},
		{"all limits", start + "maxFaults: 3\nmaxTaintedNodes: 0\n", ""},
		{"a rule", rule("forbid: {faults: [PodKill], allow: ['*']}"), ""},
		{
			"a selector", start + "rules:\n- {name: a, namespaces: {selector: 'env in (prod, live),!free'}, maxFaults: 1}\n",
			"",
		},
		{"empty", "", "empty"},
		{"only a comment", "# later\n", "empty"},
		{"no version", "maxFaults: 3\n", `version is "", must be v1alpha1`},
		{"another version", "version: v2\n", `version is "v2", must be v1alpha1`},
		{"an unknown field", start + "maxFault: 3\n", "line 2: field maxFault is unknown"},
		{"an unknown field of a rule", rule("forbids: {faults: [PodKill]}"), "line 5: field forbids is unknown"},
		{
			"a field twice", start + "maxFaults: 3\nmaxFaults: 4\n",
			`line 3: mapping key "maxFaults" already defined at line 2`,
		},
		{
			"a text for a number", start + "maxFaults: many\n",
			"line 2: cannot unmarshal !!str `many` where another type is expected",
		},
		{"a fraction", start + "maxFaults: 1.5\n", "line 2: 1.5 is no whole number"},
		{"a missing value", start + "maxFaults:\n", "line 2: a value is missing"},
		{"a missing value in a list", rule("forbid: {faults: [PodKill, ]}") + "- \n", "line 6: a value is missing"},
		{
			"an alias",
			start +
				"rules:\n- {name: a, namespaces: {names: &n [shop]}, maxFaults: 1}\n- {name: b, namespaces: {names: *n}, maxFaults: 1}\n",
			"",
		},
		{"a map for a list", start + "rules: {name: a}\n", "line 2: cannot unmarshal !!map where another type is expected"},
		{"not YAML", start + "rules: [\n", "line "},
		{"a tab", "version: v1alpha1\n\tmaxFaults: 3\n", "line 2"},
		{"two documents", start + "---\n" + start, "more than one document"},
		{"below zero", start + "maxTaintedNodes: -1\n", "maxTaintedNodes is -1, must be between 0 and 10000"},
		{"too many", start + "maxFaults: 10001\n", "maxFaults is 10001, must be between 0 and 10000"},
		{"too many in a rule", rule("maxFaults: 10001"), "rules[0].maxFaults is 10001, must be between 0 and 10000"},
		{"no name", start + "rules:\n- namespaces: {names: [shop]}\n", "rules[0].name is missing"},
		{
			"a name twice", rule("maxFaults: 1") + "- {name: shops, namespaces: {names: ['*']}, maxFaults: 1}\n",
			`rules[1].name: there is another rule "shops"`,
		},
		{"no namespaces", start + "rules:\n- {name: a, maxFaults: 1}\n", "rules[0].namespaces selects none"},
		{
			"a glob", start + "rules:\n- {name: a, namespaces: {names: [shop-*]}, maxFaults: 1}\n",
			`rules[0].namespaces.names[0]: "shop-*" is no name of a namespace`,
		},
		{
			"a bad selector", start + "rules:\n- {name: a, namespaces: {selector: 'env in prod'}, maxFaults: 1}\n",
			"rules[0].namespaces.selector: ",
		},
		{
			"an unknown fault", rule("forbid: {faults: [PodKill, PodKil]}"),
			`rules[0].forbid.faults[1]: "PodKil" is unknown; use PodKill, Hang or *`,
		},
		{
			"an unknown allowance", rule("forbid: {allow: [Everything]}"),
			`rules[0].forbid.allow[0]: "Everything" is unknown; use AllCopies, DataLoss, MajorityOfSentinels, ` +
				`MajorityOfPrimaries, TooFewCores, Eviction, Expiry or *`,
		},
		{"a rule without effect", rule("forbid: {}"), "rules[0] (shops) limits and forbids nothing"},
	} {
		_, err := Parse(tc.text, kinds)
		if got := text(err); tc.want == "" && err != nil || !strings.Contains(got, tc.want) || strings.Contains(got, "\n") {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// The list of allowances is that of the API.
func TestAllowances(t *testing.T) {
	source, err := os.ReadFile("../../api/v1alpha1/fault_types.go")
	if err != nil {
		t.Fatal(err)
	}
	if want := "Enum=" + strings.Join(allowances, ";") +
		"\ntype Allowance string"; !strings.Contains(string(source), want) {
		t.Errorf("the API has other allowances than %v", allowances)
	}
}

const shops = `version: v1alpha1
maxFaults: 5
rules:
- name: everywhere
  namespaces: {names: ["*"]}
  maxFaults: 2
  forbid: {allow: [AllCopies]}
- name: production
  namespaces: {names: [bank], selector: env=prod}
  maxFaults: 1
  forbid: {faults: [Hang]}
- name: system
  namespaces: {names: [kube-system]}
  forbid: {faults: ["*"]}
- name: careful
  namespaces: {names: [careful]}
  maxFaults: 3
  forbid: {allow: ["*"]}
`

func TestRefusal(t *testing.T) {
	p, err := Parse(shops, kinds)
	if err != nil || !p.NeedsLabels() || Default().NeedsLabels() {
		t.Fatalf("%v; needs labels %t", err, p.NeedsLabels())
	}
	for _, tc := range []struct {
		name, namespace, env string
		kind                 v1alpha1.FaultType
		allow                []v1alpha1.Allowance
		want                 string
	}{
		{"a kind that nothing forbids", "shop", "test", v1alpha1.FaultHang, nil, ""},
		{
			"by a name", "bank", "", v1alpha1.FaultHang, nil,
			`spec.action.type: Hang is forbidden in namespace bank by rule "production" (rules[1].forbid.faults)`,
		},
		{
			"by a label", "shop", "prod", v1alpha1.FaultHang, nil,
			`spec.action.type: Hang is forbidden in namespace shop by rule "production" (rules[1].forbid.faults)`,
		},
		{"another kind there", "shop", "prod", v1alpha1.FaultPodKill, nil, ""},
		{
			"every kind", "kube-system", "", v1alpha1.FaultPodKill, nil,
			`spec.action.type: PodKill is forbidden in namespace kube-system by rule "system" (rules[2].forbid.faults)`,
		},
		{
			"an allowance",
			"shop",
			"",
			v1alpha1.FaultPodKill,
			[]v1alpha1.Allowance{v1alpha1.AllowEviction, v1alpha1.AllowAllCopies},
			`spec.allow: AllCopies is forbidden in namespace shop by rule "everywhere" (rules[0].forbid.allow)`,
		},
		{"another allowance", "shop", "", v1alpha1.FaultPodKill, []v1alpha1.Allowance{v1alpha1.AllowEviction}, ""},
		{
			"every allowance",
			"careful",
			"",
			v1alpha1.FaultPodKill,
			[]v1alpha1.Allowance{v1alpha1.AllowEviction},
			`spec.allow: Eviction is forbidden in namespace careful by rule "careful" (rules[3].forbid.allow)`,
		},
	} {
		spec := &v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: tc.kind}, Allow: tc.allow}
		if got := p.Refusal(tc.namespace, map[string]string{"env": tc.env}, spec); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestLimits(t *testing.T) {
	p, err := Parse(shops, kinds)
	if err != nil {
		t.Fatal(err)
	}
	nodes, all := Limit{v1alpha1.LimitTaintedNodes, 1, "maxTaintedNodes"}, Limit{v1alpha1.LimitFaults, 5, "maxFaults"}
	for _, tc := range []struct {
		namespace, env string
		within         Limit
	}{
		{"shop", "", Limit{v1alpha1.LimitNamespaceFaults, 2, `rule "everywhere", rules[0].maxFaults`}},
		{"shop", "prod", Limit{v1alpha1.LimitNamespaceFaults, 1, `rule "production", rules[1].maxFaults`}},
		{"careful", "", Limit{v1alpha1.LimitNamespaceFaults, 2, `rule "everywhere", rules[0].maxFaults`}},
	} {
		got := p.Limits(tc.namespace, map[string]string{"env": tc.env})
		if len(got) != 3 || got[0] != nodes || got[1] != all || got[2] != tc.within {
			t.Errorf("%s %s: %+v", tc.namespace, tc.env, got)
		}
	}
	if got := Default().Limits("shop", nil); len(got) != 1 || got[0] != nodes {
		t.Errorf("without a policy: %+v", got)
	}
	p.MaxTaintedNodes = new(0)
	if got := p.Limits("shop", nil); got[0].Max != 0 {
		t.Errorf("no node: %+v", got)
	}
}
