package children

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/plan"
)

func TestLoadJob(t *testing.T) {
	isGolden(t, "job_smallest.yaml",
		LoadJob(loadTest(t, smallest), "checkout-cache-plan", "ghcr.io/redquake/redquake:v1", FixedUserIDs))
	isGolden(t, "job_fullest.yaml",
		LoadJob(loadTest(t, fullest), "checkout-cache-plan", "ghcr.io/redquake/redquake:v1", FixedUserIDs))
}

// A load that ends after a number of requests has no duration, but its pods need a deadline.
func TestLoadJobDeadlineOfRequests(t *testing.T) {
	test := loadTest(t, smallest)
	test.Spec.Load.Duration, test.Spec.Load.Requests = nil, new(int64(1000))
	got := time.Duration(*LoadJob(test, "checkout-cache-plan", "x", FixedUserIDs).Spec.ActiveDeadlineSeconds) * time.Second
	if want := 5*time.Minute + 168*time.Hour + agent.DefaultLinger + 5*time.Minute; got != want {
		t.Errorf("activeDeadlineSeconds is %v, want %v", got, want)
	}
}

// Two Jobs of one object never share memory with it or with each other.
func TestLoadJobSharesNothing(t *testing.T) {
	test := loadTest(t, fullest)
	before := test.DeepCopy()
	job := LoadJob(test, "checkout-cache-plan", "x", FixedUserIDs)
	job.Spec.Template.Labels["changed"] = "yes"
	job.Spec.Template.Spec.NodeSelector["changed"] = "yes"
	*job.Spec.Completions = 99
	if diff := cmp.Diff(before, test); diff != "" {
		t.Errorf("changing the Job changed its parent:\n%s", diff)
	}
	if got := job.Labels["changed"]; got != "" {
		t.Error("the Job and its template share their labels")
	}
	if got := job.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels["changed"]; got != "" {
		t.Error("the template and its spread constraint share their labels")
	}
	if got := *job.Spec.Parallelism; got != 3 {
		t.Errorf("parallelism is %d after completions was changed, want 3", got)
	}
}

func TestAgentSecret(t *testing.T) {
	isGolden(t, "agent_secret.yaml", AgentSecret(loadTest(t, smallest), agent.Credentials{
		CertificatePEM: []byte("certificate"), PrivateKeyPEM: []byte("key"), Token: "token",
	}))
}

func TestResultsConfigMap(t *testing.T) {
	isGolden(t, "results.yaml", ResultsConfigMap(loadTest(t, smallest), []byte{0, 1, 0xff}))
}

func TestProbeLoadTest(t *testing.T) {
	fault := &v1alpha1.RedisFault{ObjectMeta: parent("kill-primary")}
	fault.Spec.Target = &loadTest(t, fullest).Spec.Target
	fault.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: &metav1.Duration{Duration: 20 * time.Second}}
	fault.Spec.Action.Type = v1alpha1.FaultPodKill
	admit(t, fault)
	probe := ProbeLoadTest(fault)
	isGolden(t, "probe.yaml", probe)

	admit(t, probe)
	if _, err := Plan(probe, addresses); err != nil {
		t.Errorf("the probe's own spec is refused: %v", err)
	}
	probe.Spec.Target.Auth.Username = "changed"
	if got := fault.Spec.Target.Auth.Username; got != "app" {
		t.Error("the probe shares its target with the fault")
	}
}

func TestProbeLength(t *testing.T) {
	of := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	tests := []struct {
		name  string
		fault v1alpha1.RedisFaultSpec
		want  time.Duration
	}{
		{"by default", v1alpha1.RedisFaultSpec{RecoveryDeadline: *of(2 * time.Minute)}, 24*time.Hour + 3*time.Minute},
		{
			"a fault of an hour",
			v1alpha1.RedisFaultSpec{Duration: of(time.Hour), Trigger: v1alpha1.FaultTrigger{After: of(15 * time.Second)}},
			25*time.Hour + 15*time.Second + time.Minute,
		},
		{
			"until its deadline",
			v1alpha1.RedisFaultSpec{
				Duration:         of(time.Hour),
				Deadline:         of(10 * time.Minute),
				RecoveryDeadline: *of(2 * time.Minute),
			},
			13 * time.Minute,
		},
		{"longest", v1alpha1.RedisFaultSpec{Trigger: v1alpha1.FaultTrigger{After: of(168 * time.Hour)}}, 168 * time.Hour},
	}
	for _, tt := range tests {
		if got := probeLength(&tt.fault); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A load test that is created again under its name, or whose spec has changed, mounts nothing of before: kubelets keep
// immutable objects by their names.
func TestMountsAreOfOneLoadTest(t *testing.T) {
	names := func(uid types.UID, rate float64) map[string]bool {
		test := loadTest(t, smallest)
		test.UID = uid
		stored, err := PlanConfigMap(test, &plan.Plan{Run: string(uid), Shape: plan.Shape{Rate: rate}})
		if err != nil {
			t.Fatal(err)
		}
		job, all := LoadJob(test, stored.Name, "image", FixedUserIDs), map[string]bool{}
		for _, v := range job.Spec.Template.Spec.Volumes {
			if v.ConfigMap != nil {
				all[v.ConfigMap.Name] = true
			} else if v.Secret != nil {
				all[v.Secret.SecretName] = true
			}
		}
		if !all[stored.Name] || !all[AgentSecretName(test)] || PlanOf(job) != stored.Name {
			t.Errorf("%v, want %s and %s; the plan is said to be %q", all, stored.Name, AgentSecretName(test), PlanOf(job))
		}
		return all
	}
	const uid, other = "7c0a4e5e-2d29-4f54-9f0c-1f4e5b0c7a11", "9f0c1f4e-2d29-4f54-9f0c-1f4e5b0c7a12"
	first, again, changed := names(uid, 10), names(other, 10), names(uid, 20)
	shared := 0
	for name := range first {
		if again[name] {
			t.Errorf("another load test mounts %s, too", name)
		}
		if changed[name] {
			shared++
		}
	}
	if shared != len(first)-1 {
		t.Errorf("with another plan it mounts %v, before %v; want another plan alone", changed, first)
	}
}
