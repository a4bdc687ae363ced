//go:build e2e

package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/experiment"
)

// TestExperiment runs 2 x 2 cells in 4 rounds: a setting of the server, and the latency of the network. The operator is
// killed in the middle: no run that has ended runs again, and the table tells what was planted.
func TestExperiment(t *testing.T) {
	n := newNamespace(t, "experiment")
	n.applyRedis(nil)
	before := n.currentState("redis")
	e := n.planted(4)
	n.create(e)
	n.eventually(3*patience, "six runs have ended", func() (bool, string) {
		n.get(e.Name, e)
		reason, message, _, _ := completeReason(e.Status.Conditions)
		return e.Status.Progress != nil && e.Status.Progress.Finished >= 6, reason + ": " + message
	})
	ended := n.runsOf(e.Name)
	n.killOperator("in the middle of an experiment")
	n.experimentEnds(e, 6*patience)
	n.ranOnce(e, ended)
	n.tellsWhatWasPlanted(e)
	n.settingsWereHeld(e)
	n.waitForState("redis", before)
	if row := n.row("redisexperiments"); row["Status"] != v1alpha1.ReasonSucceeded || row["Progress"] != "16/16" ||
		row["Cells"] != "4" || !strings.HasSuffix(row["Worse"], "/2") {
		t.Errorf("kubectl get shows %v", row)
	}
}

// smallExperiment runs each of the 2 x 2 cells once: that is too few to tell anything. On a busy machine a load pod may
// not get the CPU that it needs: then its run is inconclusive, and the comparison says that instead.
func smallExperiment(t *testing.T) {
	n := newNamespace(t, "small-experiment")
	n.applyRedis(nil)
	before := n.currentState("redis")
	e := n.planted(1)
	n.create(e)
	n.experimentEnds(e, 3*patience)
	n.ranOnce(e, nil)
	n.settingsWereHeld(e)
	n.waitForState("redis", before)
	for _, c := range e.Status.Comparison {
		if c.Verdict != v1alpha1.ComparisonInconclusive || c.Reason != "TooFewRepeats" && c.Reason != "TooManyInconclusive" {
			n.Errorf("%+v", c)
		}
	}
	if len(e.Status.Warnings) != 1 ||
		!strings.HasPrefix(e.Status.Warnings[0], "spec.repeat: 1 is too few for latencyP50") {
		n.Errorf("warnings %q", e.Status.Warnings)
	}
}

// experimentEnds waits until an experiment has ended with all its runs.
func (n *namespace) experimentEnds(e *v1alpha1.RedisExperiment, within time.Duration) {
	n.Helper()
	n.eventually(within, "the experiment has ended", func() (bool, string) {
		n.get(e.Name, e)
		reason, message, complete, failed := completeReason(e.Status.Conditions)
		return complete || failed, reason + ": " + message
	})
	if reason, message, _, _ := completeReason(e.Status.Conditions); reason != v1alpha1.ReasonSucceeded ||
		e.Status.Progress.Finished != e.Status.Progress.Runs {
		n.Fatalf("%s: %s; %+v", reason, message, e.Status.Progress)
	}
}

// planted is an experiment in which 20 ms of latency are to be found, and no effect of hz.
func (n *namespace) planted(repeat int32) *v1alpha1.RedisExperiment {
	load := n.smallLoad("", 3*time.Second).Spec
	load.Load.RampUp, load.Load.WarmUp = nil, &metav1.Duration{Duration: time.Second}
	load.Load.Rate = new(int32(50)) // its four connections can serve four times as many with 20 ms each
	return &v1alpha1.RedisExperiment{
		ObjectMeta: metav1.ObjectMeta{Name: "planted"},
		Spec: v1alpha1.RedisExperimentSpec{
			Template: v1alpha1.LoadTestTemplate{Spec: load},
			Matrix: []v1alpha1.ExperimentParameter{
				{
					Name:   "latency",
					Path:   "client.addedLatency",
					Values: []intstr.IntOrString{intstr.FromString("0s"), intstr.FromString("20ms")},
				},
				{
					Name: "hz",
					Settings: []v1alpha1.ExperimentSetting{
						{Name: "as-is"},
						{Name: "20", Config: map[string]v1alpha1.ParameterValue{"hz": "20"}},
					},
				},
			},
			Repeat:   repeat,
			Baseline: map[string]v1alpha1.ValueName{"latency": "0s"},
			Compare:  v1alpha1.ExperimentComparison{Figures: []v1alpha1.ComparedFigure{"latencyP50"}},
		},
	}
}

// runsOf are the load tests of an experiment that have ended, by name: when each started.
func (n *namespace) runsOf(name string) map[string]time.Time {
	n.Helper()
	var tests v1alpha1.RedisLoadTestList
	n.list(&tests, client.MatchingLabels{v1alpha1.LabelExperiment: name})
	ended := map[string]time.Time{}
	for _, test := range tests.Items {
		if test.Status.CompletionTime != nil && test.Status.StartTime != nil {
			ended[test.Name] = test.Status.StartTime.Time
		}
	}
	return ended
}

// ranOnce checks that what had ended before has not run again, and that each round ran each cell.
func (n *namespace) ranOnce(e *v1alpha1.RedisExperiment, before map[string]time.Time) {
	n.Helper()
	after, want := n.runsOf(e.Name), int(4*e.Spec.Repeat)
	if len(after) != want {
		n.Errorf("%d load tests have ended, want %d: %v", len(after), want, slices.Sorted(maps.Keys(after)))
	}
	for name, start := range before {
		if !after[name].Equal(start) {
			n.Errorf("%s began at %s, and again at %s", name, start, after[name])
		}
	}
	stored := &corev1.ConfigMap{}
	if !n.get(e.Status.Results, stored) {
		n.Fatalf("there is no ConfigMap %s", e.Status.Results)
	}
	record, err := experiment.DecodeRecord(stored.BinaryData[children.ExperimentRecordKey])
	if err != nil {
		n.Fatal(err)
	}
	rounds := map[string]int{}
	for i, run := range record.Runs {
		rounds[fmt.Sprintf("round %d cell %d", run.Round, run.Cell)]++
		if run.Inconclusive != "" && !stalled(run.Inconclusive) || run.Failed != "" ||
			run.LoadTest != fmt.Sprintf("planted-%04d", i+1) || run.Values["latencyP50"].Value <= 0 {
			n.Errorf("run %d: %+v", i+1, run)
		}
		if i > 0 && run.Start.Before(record.Runs[i-1].Start) {
			n.Errorf("run %d began before the one before it", i+1)
		}
	}
	if len(rounds) != want {
		n.Errorf("the rounds ran %v", rounds)
	}
}

// stalled reports whether a run is inconclusive because its load pod did not get the CPU: on a busy machine that is the
// right answer.
func stalled(why string) bool {
	return slices.ContainsFunc([]string{impact.GeneratorStalled, impact.GeneratorStarved, "LoadGeneratorSaturated"},
		func(reason string) bool { return strings.Contains(why, verdict.Phrase(reason, "")) })
}

// tellsWhatWasPlanted checks that both comparisons are worse, unless too many runs of one have no figures: then that is
// what it says.
func (n *namespace) tellsWhatWasPlanted(e *v1alpha1.RedisExperiment) {
	n.Helper()
	if len(e.Status.Comparison) != 2 {
		n.Fatalf("comparison %+v", e.Status.Comparison)
	}
	for _, c := range e.Status.Comparison {
		whole := c.Repeats == 4 && c.BaselineRepeats == 4
		told := c.Verdict == v1alpha1.ComparisonWorse || !whole && c.Verdict == v1alpha1.ComparisonInconclusive
		if !told || !strings.HasPrefix(c.Cell, "latency=20ms,hz=") {
			n.Errorf("%+v", c)
		}
		n.Logf("%s: %s", c.Cell, c.Message)
	}
}

// settingsWereHeld checks that every setting was in force for its load.
func (n *namespace) settingsWereHeld(e *v1alpha1.RedisExperiment) {
	n.Helper()
	var faults v1alpha1.RedisFaultList
	n.list(&faults, client.MatchingLabels{v1alpha1.LabelExperiment: e.Name})
	if len(faults.Items) != int(2*e.Spec.Repeat) {
		n.Errorf("%d settings, want %d", len(faults.Items), 2*e.Spec.Repeat)
	}
	for i := range faults.Items {
		f := &faults.Items[i]
		if reason, message, _, _ := completeReason(f.Status.Conditions); reason != v1alpha1.ReasonSucceeded ||
			f.Status.Verdict != v1alpha1.VerdictPass {
			n.Errorf("%s: %s: %s, verdict %s", f.Name, reason, message, f.Status.Verdict)
		}
	}
}
