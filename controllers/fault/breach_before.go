package fault

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/record"
)

// checkedFor is how long a check before the injection counts.
const checkedFor = 5 * time.Second

// check is one evaluation of a fault's stop conditions before its injection. It runs outside of the reconciles: a Prometheus may take long to answer.
type check struct {
	done  chan struct{}
	at    time.Time        // set before done is closed, as is found
	found *v1alpha1.Breach // nil = none
}

// checkStops reports whether the stop conditions let the fault be injected. If not, the outcome is what to do.
func (r *Reconciler) checkStops(s *scope) (o outcome, pass bool) {
	conditions := r.stopsOf(s.fault)
	if conditions == nil {
		return outcome{}, true
	}
	running, _ := r.checks.Load(s.fault.UID)
	c, _ := running.(*check)
	if c == nil || c.ended() && r.Clock.Since(c.at) > checkedFor {
		r.checks.Store(s.fault.UID, r.beginCheck(s, conditions))
		return outcome{}, false
	}
	if !c.ended() {
		return outcome{}, false
	}
	r.checks.Delete(s.fault.UID)
	if c.found == nil {
		return outcome{}, true
	}
	s.fault.Status.Breach = c.found
	return outcome{problem: &problem.Problem{Reason: v1alpha1.ReasonStopConditionMet, Message: c.found.Message + ": the fault was not injected", Lasting: true}, ended: true, failed: true}, false
}

func (r *Reconciler) beginCheck(s *scope, conditions *stops) *check {
	run := s.run
	lately := func() (live *impact.Live) {
		run.Read(func(series *record.Series) { live = new(impact.Lately(series)) })
		return live
	}
	c := &check{done: make(chan struct{})}
	key := client.ObjectKeyFromObject(s.fault)
	r.Reverters.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), slowestQuery) // not that of the reconcile, which ends before
		defer cancel()
		c.found = conditions.check(ctx, lately)
		c.at = r.Clock.Now()
		if c.found != nil {
			c.found.At = metav1.NewMicroTime(c.at)
		}
		close(c.done)
		r.Reverters.notify(key)
	})
	return c
}

func (c *check) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// warnings are what else will act on the targets, and what will not.
func (s *scope) warnings(ctx context.Context, targets []v1alpha1.FaultTarget) []string {
	found := fault.Warnings(ctx, s.deps.Redis, s.traits, targets)
	if s.fault.Spec.StopIf != nil && !s.traits.Stays() {
		found = append(found[:min(len(found), 31)], "spec.stopIf is only evaluated before the injection: this fault is over right after it, and leaves nothing to revert")
	}
	return found
}

// mostWarnings is how many the status has at most.
const mostWarnings = 32

// fitting is warnings that fit the status: they quote what a server replied.
func fitting(warnings []string) []string {
	var kept []string
	for _, w := range warnings[:min(len(warnings), mostWarnings)] {
		kept = append(kept, digest.Truncate(w, 512))
	}
	return kept
}
