package controllers

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
)

// newExperiment is an experiment on the latency that is added to each request: 5 and 10 ms, three times each.
func newExperiment(name, address string, change func(*v1alpha1.RedisExperiment)) *v1alpha1.RedisExperiment {
	e := &v1alpha1.RedisExperiment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.RedisExperimentSpec{
			Template: v1alpha1.LoadTestTemplate{Spec: newLoadTest("", address, nil).Spec},
			Matrix: []v1alpha1.ExperimentParameter{
				{Name: "latency", Path: "client.addedLatency", Values: []intstr.IntOrString{intstr.FromString("5ms"), intstr.FromString("10ms")}},
			},
			Repeat:  4,
			Compare: v1alpha1.ExperimentComparison{Figures: []v1alpha1.ComparedFigure{"latencyP99"}},
		},
	}
	if change != nil {
		change(e)
	}
	return e
}

func (p *place) experiment(name string) *v1alpha1.RedisExperiment {
	p.t.Helper()
	e := &v1alpha1.RedisExperiment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.read(e)
	return e
}

func (p *place) experimentEnds(name string, within time.Duration) *v1alpha1.RedisExperiment {
	p.t.Helper()
	var e *v1alpha1.RedisExperiment
	p.until("the experiment has ended", within, func() bool {
		e = p.experiment(name)
		return state.IsFinished(e.Status.Conditions)
	}, func() string {
		e := p.experiment(name)
		return fmt.Sprintf("%s, %+v", where(e.Status.Conditions), e.Status.Run)
	})
	return e
}

// runsOf are the load tests of an experiment, in the order of their names.
func (p *place) runsOf(name string) []v1alpha1.RedisLoadTest {
	p.t.Helper()
	var all v1alpha1.RedisLoadTestList
	p.mustChange(p.client.List(context.Background(), &all))
	return slices.DeleteFunc(all.Items, func(test v1alpha1.RedisLoadTest) bool { return test.Labels[v1alpha1.LabelExperiment] != name })
}

func TestExperiment(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(p, spy{})
		p.create(newExperiment("latency", redis.address(), nil))
		e := p.experimentEnds("latency", 10*time.Minute)
		st := &e.Status
		if reason(st.Conditions) != v1alpha1.ReasonSucceeded || st.Verdict != v1alpha1.VerdictPass || len(st.Comparison) != 1 {
			t.Fatalf("%s, verdict %s, comparison %+v", where(st.Conditions), st.Verdict, st.Comparison)
		}
		if c := st.Comparison[0]; c.Verdict != v1alpha1.ComparisonWorse || c.Cell != "latency=10ms" || c.Repeats != 4 {
			t.Errorf("comparison %+v", c)
		}
		t.Logf("%s: %s; %s", reason(st.Conditions), where(st.Conditions), st.Comparison[0].Message)
		runs := p.runsOf("latency")
		if len(runs) != 8 || runs[0].Name != "latency-0001" {
			t.Errorf("%d runs", len(runs))
		}
		rounds := map[string][]string{}
		for i := range runs {
			round := runs[i].Labels[v1alpha1.LabelRound]
			rounds[round] = append(rounds[round], runs[i].Annotations[v1alpha1.AnnotationCell])
			if i > 0 && runs[i].Status.StartTime.Before(runs[i-1].Status.CompletionTime) {
				t.Errorf("%s began before %s had ended", runs[i].Name, runs[i-1].Name)
			}
		}
		for round, cells := range rounds {
			if slices.Sort(cells); !slices.Equal(cells, []string{"latency=10ms", "latency=5ms"}) {
				t.Errorf("round %s ran %q", round, cells)
			}
		}
		if d := st.Display; d.Progress != "8/8" || d.Cells != "2" || d.Worse != "1/1" {
			t.Errorf("display %+v", d)
		}
	})
}
