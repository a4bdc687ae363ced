package output

import (
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/testing/golden"
)

// The end of run and watch: a load test with a fault on it, a fault whose revert was given up, a setting, and
// experiments.
func TestWriteEnds(t *testing.T) {
	t.Parallel()
	saved := clitest.Saved(t, "demo")
	stuck, setting := saved.Faults[0].DeepCopy(), saved.Faults[0].DeepCopy()
	stuck.Name, setting.Name = "stuck", "no-save"
	stuck.Status.Conditions = append(clitest.Condition(v1alpha1.ConditionFailed, metav1.ConditionTrue,
		"the revert was abandoned"),
		clitest.Condition(v1alpha1.ConditionComplete, metav1.ConditionFalse, "the revert was abandoned")...)
	stuck.Status.Warnings = []string{"the pod has a preStop hook"}
	stuck.Status.Verdict, stuck.Status.Impact, stuck.Status.Objectives = "", nil, nil
	stuck.Status.Targets[0].RevertAbandoned, stuck.Status.Targets[0].ManualRevertCommand = true,
		"redis-cli config set save ''"
	setting.Spec.Setting, setting.Status.Verdict, setting.Status.Impact, setting.Status.Objectives = true,
		v1alpha1.VerdictPass, nil, nil
	setting.Status.Conditions = append(clitest.Condition(v1alpha1.ConditionHeld, metav1.ConditionTrue,
		"the setting is in force"), clitest.Condition(v1alpha1.ConditionComplete, metav1.ConditionTrue, "")...)
	done, waiting := &v1alpha1.RedisExperiment{}, &v1alpha1.RedisExperiment{}
	done.Name, waiting.Name, done.Namespace, waiting.Namespace = "fsync", "later", "shop", "shop"
	done.Status = v1alpha1.RedisExperimentStatus{
		Verdict:  v1alpha1.VerdictFail,
		Progress: &v1alpha1.ExperimentProgress{Runs: 24, Finished: 24, Inconclusive: 1},
		Notes:    []string{"1 run was left out"},
		Conditions: append(clitest.Condition(v1alpha1.ConditionComplete, metav1.ConditionTrue, "24 runs"),
			clitest.Condition(v1alpha1.ConditionObjectivesMet, metav1.ConditionFalse,
				"appendfsync=always: throughput 75% lower")...),
		Comparison: []v1alpha1.ComparisonResult{
			{
				Verdict: v1alpha1.ComparisonWorse,
				Message: "appendfsync=always: throughput 75% lower than appendfsync=no (97.5%: -75.8% to -74.5%; 6 repeats against 6)",
			},
			{Verdict: v1alpha1.ComparisonSame, Message: "appendfsync=everysec: throughput same within 10%"},
		},
	}
	waiting.Status.Conditions = clitest.Condition(v1alpha1.ConditionComplete, metav1.ConditionFalse,
		"waits for the experiment before it")
	var text strings.Builder
	objects := []*kube.Object{
		{Kind: kube.LoadTest, Test: &saved.Tests[0]},
		{Kind: kube.Fault, Fault: &saved.Faults[0]},
		{Kind: kube.Fault, Fault: stuck},
		{Kind: kube.Fault, Fault: setting},
		{Kind: kube.Experiment, Experiment: done},
		{Kind: kube.Experiment, Experiment: waiting},
	}
	if err := WriteEnds(&text, objects, objects); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "ends.txt"), text.String())
}

// The end of a load that was watched alone has the outages of the faults that were shown with it.
func TestWriteEndsOfALoadAlone(t *testing.T) {
	t.Parallel()
	saved := clitest.Saved(t, "demo")
	load := &kube.Object{Kind: kube.LoadTest, Test: &saved.Tests[0]}
	var text strings.Builder
	err := WriteEnds(&text, []*kube.Object{load}, []*kube.Object{load, {Kind: kube.Fault, Fault: &saved.Faults[0]}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "kill-primary  PodKill  +20.99 s  500 ms ± 22 ms") ||
		strings.Contains(text.String(), "fault controllers-1/") {
		t.Error(text.String())
	}
}
