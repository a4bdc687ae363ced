package doctor_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/doctor"
	"github.com/redquake/redquake/cmd/redquake/output"
	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/policy"
	"github.com/redquake/redquake/internal/rights"
	"github.com/redquake/redquake/internal/testing/golden"
)

// ready are the facts of a cluster with everything.
func ready() *doctor.Facts {
	f := &doctor.Facts{
		Namespace:         "shop",
		Server:            "v1.36.1",
		Minor:             36,
		Served:            []string{"redisloadtests", "redisfaults", "redisexperiments", "redisexperimentschedules"},
		AdmissionPolicies: 4,
		Managers: []doctor.Manager{
			{
				Namespace: "redquake-system",
				Name:      "redquake-controller-manager",
				Image:     "registry.example/redquake:0.1",
				Ready:     1,
				Wanted:    1,
				Faults:    "*,NodeLoss,VolumeAttachDelay",
			},
		},
		User:       map[rights.Right]bool{rights.CreateLoadTests: true, rights.CreateFaults: true, rights.RunJobs: true},
		Operator:   map[rights.Right]bool{},
		Nodes:      doctor.Nodes{All: 3, Schedulable: 2},
		Classes:    []doctor.Class{{Name: "csi", Default: true, Attaches: true}, {Name: "local"}},
		PodMetrics: true,
		ChaosMesh: doctor.ChaosMesh{
			Resources: []string{"podchaos", "networkchaos", "iochaos", "stresschaos", "timechaos"},
			Version:   "v2.8.0",
		},
	}
	for _, kind := range declared.All {
		for _, need := range kind.Needs {
			f.User[need.Right] = true
		}
		for _, right := range kind.Rights(&v1alpha1.Action{Type: kind.Type}) {
			f.Operator[right] = true
		}
	}
	return f
}

// poor are the facts of a cluster that lacks much, as a user with few rights sees it.
func poor() *doctor.Facts {
	f := ready()
	f.Server, f.OtherSchemas, f.AdmissionPolicies = "v1.30.4", []string{"redisfaults"}, 1
	f.Minor = 30
	f.Managers[0].Ready, f.Managers[0].Faults, f.Managers[0].Namespaces = 0, "*", []string{"cart"}
	f.User = map[rights.Right]bool{
		rights.CreateLoadTests:             true,
		rights.RunJobs:                     false,
		rights.CreateFaults:                true,
		{Verb: "delete", Resource: "pods"}: false,
	}
	f.UserUnasked = "you may not create selfsubjectaccessreviews"
	f.Operator = map[rights.Right]bool{{Verb: "delete", Resource: "pods"}: false}
	f.Annotations = map[string]string{v1alpha1.AnnotationStop: "true"}
	f.Policy, _ = policy.Parse(
		"version: v1alpha1\nmaxFaults: 2\nrules:\n- {name: calm, namespaces: {names: [shop]}, forbid: {faults: [Hang]}}\n",
		declared.Types())
	f.Nodes = doctor.Nodes{Unasked: "you may not list nodes"}
	f.Classes = []doctor.Class{{Name: "local"}}
	f.PodMetrics = false
	f.ChaosMesh = doctor.ChaosMesh{}
	return f
}

func TestJudge(t *testing.T) {
	for name, facts := range map[string]*doctor.Facts{"ready.txt": ready(), "poor.txt": poor()} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := output.WriteDoctor(&out, doctor.Judge(facts, nil)); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name)
			golden.Compare(t, file, out.String())
		})
	}
}

// Each fact that is bad by itself shows in its check, and decides about Ready only where everything needs it.
func TestOneFact(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*doctor.Facts)
		check  string
		status doctor.Status
		ready  bool
	}{
		"no CRDs":      {func(f *doctor.Facts) { f.Served = nil }, "kinds", doctor.Missing, false},
		"no schedules": {func(f *doctor.Facts) { f.Served = f.Served[:3] }, "kinds", doctor.Missing, false},
		"other CRDs": {func(f *doctor.Facts) {
			f.OtherSchemas = []string{
				"redisfaults",
			}
		}, "kinds", doctor.Note, true},
		"old Kubernetes": {func(f *doctor.Facts) { f.Minor = 28 }, "kubernetes", doctor.Missing, false},
		"no operator":    {func(f *doctor.Facts) { f.Managers = nil }, "operator", doctor.Missing, false},
		"operator unasked": {func(f *doctor.Facts) {
			f.Managers = nil
			f.ManagersUnasked = "you may not"
		}, "operator", doctor.Unknown, true},
		"watches another": {func(f *doctor.Facts) {
			f.Managers[0].Namespaces = []string{
				"cart",
			}
		}, "watched", doctor.Missing, false},
		"may run no Jobs": {
			func(f *doctor.Facts) { f.User[rights.RunJobs] = false },
			"your rights: load tests",
			doctor.Missing,
			false,
		},
		"may make no faults": {
			func(f *doctor.Facts) { f.User[rights.CreateFaults] = false },
			"your rights: faults",
			doctor.Missing,
			true,
		},
		"protected": {func(f *doctor.Facts) {
			f.Annotations = map[string]string{
				v1alpha1.AnnotationProtected: "true",
			}
		}, "namespace", doctor.Note, true},
		"stopped everywhere": {func(f *doctor.Facts) { f.StoppedEverywhere = true }, "namespace", doctor.Note, true},
		"no namespace":       {func(f *doctor.Facts) { f.NamespaceAbsent = true }, "namespace", doctor.Missing, false},
		"invalid policy":     {func(f *doctor.Facts) { f.PolicyInvalid = "line 3" }, "policy", doctor.Missing, true},
		"no nodes":           {func(f *doctor.Facts) { f.Nodes = doctor.Nodes{All: 2} }, "nodes", doctor.Missing, false},
		"one node":           {func(f *doctor.Facts) { f.Nodes.Schedulable = 1 }, "nodes", doctor.Note, true},
		"no storage":         {func(f *doctor.Facts) { f.Classes = nil }, "storage", doctor.Note, true},
		"no chaos mesh":      {func(f *doctor.Facts) { f.ChaosMesh = doctor.ChaosMesh{} }, "chaos mesh", doctor.Note, true},
	} {
		t.Run(name, func(t *testing.T) {
			facts := ready()
			test.change(facts)
			r := doctor.Judge(facts, nil)
			i := slices.IndexFunc(r.Checks, func(c doctor.Check) bool { return c.Name == test.check })
			if got := r.Checks[i]; got.Status != test.status || r.Ready != test.ready || got.Detail == "" {
				t.Errorf("%+v, ready %v; want %s, %v", got, r.Ready, test.status, test.ready)
			}
		})
	}
}

// A kind of fault that is asked for decides about Ready, by whichever engine it is possible.
func TestWanted(t *testing.T) {
	facts := ready()
	facts.ChaosMesh = doctor.ChaosMesh{}
	facts.Managers[0].Faults = "*"
	for kind, want := range map[v1alpha1.FaultType]bool{
		v1alpha1.FaultPodKill:   true,
		v1alpha1.FaultCPUStress: false,
		v1alpha1.FaultNodeLoss:  false,
		v1alpha1.FaultConfig:    true,
	} {
		if got := doctor.Judge(facts, []v1alpha1.FaultType{kind}).Ready; got != want {
			t.Errorf("%s: ready %v, want %v", kind, got, want)
		}
	}
}
