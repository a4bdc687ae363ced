package faultrun

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/format"
)

// Limits of the evaluation of stop conditions.
const (
	// liveEvery is how often the record is read while a fault with a limit on its figures is injected.
	liveEvery = 500 * time.Millisecond
	// recordLate is how far the end of a record may be behind before it counts as unreadable.
	recordLate = 5 * time.Second
	// resumeWithin is how long a process that starts may take until it has a record to read.
	resumeWithin = 10 * time.Second
	// SlowestQuery is how long the answer to a query may take at most.
	SlowestQuery = 10 * time.Second
)

// Stops evaluates the stop conditions of one fault. It holds all that this needs, as a reverter
// does: no reconcile takes part.
type Stops struct {
	Spec *v1alpha1.StopConditions
	// Live returns what the load's record shows of the fault, and how far its end is behind.
	// ErrNoRecord: this process has none.
	Live  func(p Progress) (live impact.Live, behind time.Duration, err error)
	Query func(ctx context.Context, q *v1alpha1.StopQuery) *v1alpha1.Breach
}

// watchStops evaluates the stop conditions from the injection until the revert begins. It may be
// called again.
func (v *Reverter) watchStops() {
	v.mu.Lock()
	defer v.mu.Unlock()
	stops := v.by.Load().Stops
	if stops == nil || v.watching || v.work.known.injectedAt == nil ||
		v.work.known.revertingSince != nil || v.over.Err() != nil {
		return
	}
	v.watching = true
	ctx, cancel := context.WithCancel(v.over)
	context.AfterFunc(v.begun, cancel)
	if stops.limitsFigures() {
		v.session.registry.start(func() { v.watchFigures(ctx) })
	}
	for i := range stops.Spec.Queries {
		q := &stops.Spec.Queries[i]
		v.session.registry.start(func() {
			for again := true; again; again = pauseFor(ctx, q.Every.Duration) {
				if v.leftToOthers(ctx) {
					continue
				}
				if stops := v.by.Load().Stops; stops != nil {
					v.stopFor(ctx, stops.Query(ctx, q))
				}
			}
		})
	}
}

// watchFigures evaluates the limits on the fault's own figures.
func (v *Reverter) watchFigures(ctx context.Context) {
	since := v.now()
	for again := true; again; again = pauseFor(ctx, liveEvery) {
		if v.leftToOthers(ctx) {
			since = v.now()
			continue
		}
		p, _ := v.Progress()
		stops := v.by.Load().Stops
		if stops == nil {
			continue
		}
		live, behind, err := stops.Live(p)
		switch {
		case err != nil && v.now().Sub(since) > resumeWithin:
			v.stopFor(ctx, stops.unreadable(err.Error()))
		case err != nil:
		case behind > recordLate && v.now().Sub(since) > resumeWithin:
			v.stopFor(ctx, stops.unreadable(fmt.Sprintf("it ends %s ago", format.Duration(behind))))
		default:
			v.stopFor(ctx, stops.figures(live))
		}
	}
}

// leftToOthers reports whether this process does not lead, although the API server answers: then
// another one leads, and evaluates the stop conditions.
func (v *Reverter) leftToOthers(ctx context.Context) bool {
	if v.session.registry.leads() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, ReadTimeout)
	defer cancel()
	return v.by.Load().Live.Get(ctx, v.session.key, &v1alpha1.RedisFault{}) == nil
}

// stopFor begins the revert because of a breach, unless it has begun already.
func (v *Reverter) stopFor(ctx context.Context, b *v1alpha1.Breach) {
	if b == nil || ctx.Err() != nil {
		return
	}
	v.mu.Lock()
	first := v.work.known.revertingSince == nil
	if first {
		b.At = metav1.NewMicroTime(v.now())
		v.work.known.breach = b
		v.work.known.begin(b.At.Time)
	}
	v.mu.Unlock()
	if first {
		v.log.Info("Reverting: a stop condition is met", "condition", b.Condition, "message", b.Message)
		v.begin()
	}
}

// limitsFigures reports whether any condition is a limit on the load's own figures.
func (s *Stops) limitsFigures() bool {
	return s.Spec.Outage != nil || s.Spec.ErrorRate != nil || s.Spec.LostWrites != nil
}

// figures compares the figures with their limits.
func (s *Stops) figures(live impact.Live) *v1alpha1.Breach {
	if limit := s.Spec.Outage; limit != nil && live.Outage >= limit.Duration {
		return BreachOf("spec.stopIf.outage", true,
			fmt.Sprintf("no success for %s, limit %s", format.Duration(live.Outage),
				format.Duration(limit.Duration)))
	}
	if limit := s.Spec.ErrorRate; limit != nil &&
		live.ErrorRate >= v1alpha1.Percentage(*limit).Share() {
		return BreachOf("spec.stopIf.errorRate", true,
			fmt.Sprintf("%s of the requests of one second did not succeed, limit %s",
				format.Share(live.ErrorRate), *limit))
	}
	return s.lostWrites(&live.Ledger)
}

// unreadable is the breach of a fault whose figures are not known any more.
func (s *Stops) unreadable(why string) *v1alpha1.Breach {
	field := "spec.stopIf.outage"
	switch {
	case s.Spec.Outage != nil:
	case s.Spec.ErrorRate != nil:
		field = "spec.stopIf.errorRate"
	default:
		field = LostWritesField
	}
	return BreachOf(field, false, "the load's record cannot be read: "+why)
}

// BreachOf is a breach seen now; message is what holds of its field.
func BreachOf(field string, answered bool, message string) *v1alpha1.Breach {
	return &v1alpha1.Breach{
		Condition: field,
		Answered:  answered,
		Message:   digest.Truncate(field+": "+message, 1024),
	}
}

// check evaluates all conditions once, before the injection. lately returns the state of the load;
// nil = there is no record.
func (s *Stops) check(ctx context.Context, lately func() *impact.Live) *v1alpha1.Breach {
	if now := lately(); now != nil {
		if b := s.figures(*now); b != nil {
			return b
		}
	}
	found := make([]*v1alpha1.Breach, len(s.Spec.Queries)+1)
	var all sync.WaitGroup
	if s.Spec.LostWrites != nil {
		all.Go(func() { found[len(s.Spec.Queries)] = s.ledgerUnread(ctx, lately) })
	}
	for i := range s.Spec.Queries {
		all.Go(func() { found[i] = s.Query(ctx, &s.Spec.Queries[i]) })
	}
	all.Wait()
	for _, b := range found {
		if b != nil {
			return b
		}
	}
	return nil
}

// ErrNoRecord is why a process has no figures of a fault.
var ErrNoRecord = errors.New("this operator has no record of the load")

// pauseFor waits; it returns false if ctx has ended.
func pauseFor(ctx context.Context, d time.Duration) bool {
	timer, stop := context.WithTimeout(ctx, d)
	defer stop()
	<-timer.Done()
	return ctx.Err() == nil
}
