package controllers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/redquake/redquake/api/v1alpha1"
)

// newSchedule is an experiment that runs every night at 3:00: two cells, three times each.
func newSchedule(name, address string, change func(*v1alpha1.RedisExperiment)) *v1alpha1.RedisExperiment {
	return newExperiment(name, address, func(e *v1alpha1.RedisExperiment) {
		e.Spec.Schedule, e.Spec.Repeat = "0 3 * * *", 4
		e.Spec.Template.Spec.Load.Duration = length(time.Second)
		e.Spec.Template.Spec.Load.Rate = new(int32(20))
		e.Spec.Template.Spec.Observe.Interval = metav1.Duration{Duration: 500 * time.Millisecond}
		e.Spec.Template.Spec.Probe = &v1alpha1.LoadProbe{}
		e.Spec.Matrix[0].Values = []intstr.IntOrString{intstr.FromString("5ms"), intstr.FromString("6ms")}
		e.Spec.Compare.Margins = map[string]v1alpha1.Percentage{"latencyP99": "10%"}
		if change != nil {
			change(e)
		}
	})
}

// night is the scheduled time of the n-th run of newSchedule: the world begins at midnight UTC, 2000-01-01.
func night(n int) time.Time { return time.Date(2000, 1, n, 3, 0, 0, 0, time.UTC) }

func nameOf(schedule string, at time.Time) string { return fmt.Sprintf("%s-%d", schedule, at.Unix()/60) }

// runsHaveEnded waits until the history of a schedule has so many runs.
func (p *place) runsHaveEnded(name string, n int, within time.Duration) *v1alpha1.RedisExperiment {
	p.t.Helper()
	var e *v1alpha1.RedisExperiment
	p.until(fmt.Sprintf("%d runs have ended", n), within, func() bool {
		e = p.experiment(name)
		return e.Status.Schedule != nil && len(e.Status.Schedule.History) >= n
	}, func() string {
		e := p.experiment(name)
		return fmt.Sprintf("%s, %+v", where(e.Status.Conditions), e.Status.Schedule)
	})
	return e
}

func (p *place) events(reason string) (notes []string) {
	p.t.Helper()
	var all eventsv1.EventList
	p.mustChange(p.client.List(context.Background(), &all))
	for _, e := range all.Items {
		if e.Reason == reason {
			notes = append(notes, e.Regarding.Name+": "+e.Note)
		}
	}
	return notes
}

// noisy makes the requests of each load take from 0 to 200 us longer, the same for all of them; slower: from an instant on, so much more.
func (w *world) noisy(from time.Time, slower time.Duration) {
	w.redis.Take(func(start time.Time) time.Duration {
		random := rand.New(rand.NewPCG(1, uint64(start.UnixMilli())))
		takes := time.Duration(random.Int64N(int64(200 * time.Microsecond))).Round(10 * time.Microsecond)
		if slower > 0 && !start.Before(from) {
			takes += slower
		}
		return takes
	})
}

// A slowdown from the 21st night on: the comparison with the last run finds it at once, and the history within 6 runs more, exactly once.
func TestScheduleFindsASlowdown(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(p, spy{})
		w.noisy(night(21), 2*time.Millisecond)
		p.create(newSchedule("nightly", redis.address(), func(e *v1alpha1.RedisExperiment) { e.Spec.CompareTo = &v1alpha1.EarlierRun{Run: "last"} }))
		e := p.runsHaveEnded("nightly", 40, 41*24*time.Hour)
		st := e.Status.Schedule
		since := nameOf("nightly", night(21))
		for i, run := range st.History {
			if run.Name != nameOf("nightly", night(i+1)) || run.Verdict != v1alpha1.VerdictPass {
				t.Errorf("run %d: %+v", i+1, run)
			}
			if is := run.Regressed > 0; is != (i == 20) {
				t.Errorf("run %d shows %d regressions: %s", i+1, run.Regressed, run.Message)
			}
		}
		t.Logf("%+v", st.Changes)
		t.Logf("%s", st.History[20].Message)
		if len(st.Changes) != 2 { // one of each cell
			t.Errorf("changes %+v", st.Changes)
		}
		for _, c := range st.Changes {
			if c.Since != since || !c.Worse || c.Found > nameOf("nightly", night(27)) {
				t.Errorf("change %+v, want since %s", c, since)
			}
		}
		regressed := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionRegressed)
		t.Logf("%+v", regressed)
		t.Log(p.events(v1alpha1.EventExperimentRegressed))
		_ = slices.Contains[[]string]
	})
}
