package declared_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/config/crd"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/declared"
)

// Every type of the API has a kind, and every kind says all that the rest of Redquake asks. A kind without needs could
// be created by anybody.
func TestEveryKindIsDeclared(t *testing.T) {
	types := slices.Sorted(slices.Values(v1alpha1.FaultTypes))
	if !slices.Equal(declared.Types(), types) || !slices.Equal(fault.Types(), types) {
		t.Errorf("there are kinds of %v, injectors of %v, the API has %v", declared.Types(), fault.Types(), types)
	}
	names := map[string]bool{}
	for _, k := range declared.All {
		spec := v1alpha1.RedisFaultSpec{Engine: k.Engine, Action: v1alpha1.Action{Type: k.Type}}
		if names[k.Name()] || strings.Count(k.Doing, "%s") != 1 || strings.Count(k.Doing, "%") != 1 {
			t.Errorf("%s %s: name %s, doing %q", k.Engine, k.Type, k.Name(), k.Doing)
		}
		names[k.Name()] = true
		injector, err := fault.For(&spec, contract.Deps{})
		if err != nil {
			t.Fatalf("%s %s: %v", k.Engine, k.Type, err)
		}
		if injector.Traits().External != k.External || k.External != (len(k.Needs) == 0) {
			t.Errorf("%s %s needs %v of its user", k.Engine, k.Type, k.Needs)
		}
	}
}

// The kinds on nodes are those with rights on nodes: the others are bound by default.
func TestKindsOnNodesTaint(t *testing.T) {
	for _, o := range declared.All {
		spec := v1alpha1.RedisFaultSpec{Engine: o.Engine, Action: v1alpha1.Action{Type: o.Type}}
		injector, err := fault.For(&spec, contract.Deps{})
		if err != nil {
			t.Fatalf("%s: %v", o.Type, err)
		}
		taints := injector.Traits().Taints
		if taints != (len(o.On(true)) > 0) || taints != (o.Component == declared.NodeFaults) {
			t.Errorf("%s: taints %v, has rights on cluster-scoped resources %v by component %q", o.Type, taints, o.On(true),
				o.Component)
		}
	}
}

// What a fault needs depends on its settings.
func TestRightsOfTheOperator(t *testing.T) {
	tests := []struct {
		name string
		spec v1alpha1.RedisFaultSpec
		want []string
	}{
		{"PodKill", v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}}, []string{"delete pods"}},
		{
			"PodKill by Chaos Mesh",
			v1alpha1.RedisFaultSpec{Engine: v1alpha1.EngineChaosMesh, Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}},
			[]string{
				"get podchaos.chaos-mesh.org", "list podchaos.chaos-mesh.org", "create podchaos.chaos-mesh.org",
				"delete podchaos.chaos-mesh.org",
			},
		},
		{
			"IOThreads by a roll",
			v1alpha1.RedisFaultSpec{
				Action: v1alpha1.Action{Type: v1alpha1.FaultIOThreads, IOThreads: &v1alpha1.IOThreads{Method: v1alpha1.ApplyRoll}},
			},
			[]string{"patch statefulsets.apps", "delete pods"},
		},
		{
			"IOThreads by CONFIG SET",
			v1alpha1.RedisFaultSpec{
				Action: v1alpha1.Action{Type: v1alpha1.FaultIOThreads, IOThreads: &v1alpha1.IOThreads{Method: v1alpha1.ApplyLive}},
			},
			nil,
		},
		{
			"VolumeAttachDelay without taint",
			v1alpha1.RedisFaultSpec{
				Action: v1alpha1.Action{
					Type:              v1alpha1.FaultVolumeAttachDelay,
					VolumeAttachDelay: &v1alpha1.VolumeAttachDelay{KeepAway: v1alpha1.KeepAwayNone},
				},
			},
			[]string{
				"create pods", "delete pods", "get persistentvolumeclaims", "get persistentvolumes",
				"get volumeattachments.storage.k8s.io", "list volumeattachments.storage.k8s.io",
			},
		},
		{
			"Drain of its targets",
			v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultDrain}},
			[]string{"create pods/eviction", "list poddisruptionbudgets.policy"},
		},
		{
			"OperatorOutage",
			v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultOperatorOutage}},
			[]string{"get deployments.apps", "update deployments/scale.apps"},
		},
		{
			"Drain of a node",
			v1alpha1.RedisFaultSpec{
				Action: v1alpha1.Action{Type: v1alpha1.FaultDrain, Drain: &v1alpha1.Drain{Node: "node-a"}},
			},
			[]string{"create pods/eviction", "list poddisruptionbudgets.policy", "get nodes", "list nodes", "patch nodes"},
		},
		{"Config", v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultConfig}}, nil},
	}
	for _, test := range tests {
		var got []string
		for _, right := range declared.Of(&test.spec).Rights(&test.spec.Action) {
			got = append(got, right.String())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s needs %q, want %q", test.name, got, test.want)
		}
	}
}

// A member that no kind declares could be applied by anybody.
func TestEveryMemberOfASettingHasAKind(t *testing.T) {
	text, err := crd.Bases.ReadFile("bases/redquake.dev_redisexperiments.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var definition apiext.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &definition); err != nil {
		t.Fatal(err)
	}
	setting := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].
		Properties["matrix"].Items.Schema.Properties["settings"].Items.Schema
	for field := range setting.Properties {
		if slices.Contains([]string{"name", "faults", "noFaults"}, field) {
			continue
		}
		if !slices.ContainsFunc(declared.All, func(k declared.Kind) bool { return k.Member == field }) {
			t.Errorf("%s is the member of no kind", field)
		}
	}
}

// The kinds of settings are those of which the API knows the order.
func TestEverySettingHasAnOrder(t *testing.T) {
	var members []v1alpha1.FaultType
	for _, k := range declared.All {
		if k.Member != "" {
			members = append(members, k.Type)
		}
	}
	slices.Sort(members)
	if ordered := slices.Sorted(slices.Values(v1alpha1.SettingTypes)); !slices.Equal(members, ordered) {
		t.Errorf("kinds of settings are %v, the API has an order of %v", members, ordered)
	}
}

// The exceptions of a kind have one setting: an experiment's policy tells a kind with it from one without it.
func TestOneExceptionForEachKind(t *testing.T) {
	for _, f := range declared.All {
		var settings []string
		for _, need := range f.Needs {
			if need.Unless != nil {
				settings = append(settings, need.Unless.Holds("action"))
			}
		}
		for _, grant := range f.Grants {
			if grant.Unless != nil {
				settings = append(settings, grant.Unless.Holds("action"))
			}
		}
		slices.Sort(settings)
		if len(slices.Compact(settings)) > 1 {
			t.Errorf("%s %s needs less with %q", f.Engine, f.Type, settings)
		}
	}
}

// No code names a kind but its own package, the declarations and the API. What ranges over the declarations needs no
// change for a new kind. Tools and tests of whole systems name those that they use as examples.
func TestKindsAreNamedNowhereElse(t *testing.T) {
	var names []string
	for _, typ := range v1alpha1.FaultTypes {
		names = append(names, string(typ))
	}
	all := strings.Join(names, "|")
	named := regexp.MustCompile(`v1alpha1\.Fault(` + all + `)\b|"(` + all + `)"`)
	root := filepath.Join("..", "..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		at, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() &&
			(slices.Contains([]string{
				"api", "hack", "test", "build", "bin",
				"internal/fault", "internal/testing", "cmd/redquake/internal/clitest",
			}, at) || len(at) > 1 && strings.HasPrefix(at, ".")):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(at, ".go") || strings.HasSuffix(at, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for i, line := range strings.Split(string(text), "\n") {
			if found := named.FindString(line); found != "" {
				t.Errorf("%s:%d names %s: declare what it asks in internal/fault/declared", at, i+1, found)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
