package redisfault

import (
	"context"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/figures"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/anomaly"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/timeline"
)

const (
	// clocksApart is by how much the clock of whoever sets the annotation may be ahead of the
	// operator's.
	clocksApart = 2 * time.Second
	// markedWithin is how old an instant may be of which the record is kept at full resolution.
	markedWithin = 10 * time.Minute
	// maxMark is the length of an instant: a parser accepts any number of digits, and an annotation
	// has room for 256 KiB.
	maxMark = 64
)

// observeMark determines whether something else has broken Redis. A usable annotation precedes what
// the load shows. Once t0 is stored it does not change.
func (r *Reconciler) observeMark(s *scope.Fault) {
	if !s.Traits.External {
		return
	}
	value, set := s.Fault.Annotations[v1alpha1.AnnotationMark]
	began := s.Fault.Status.StartTime
	if began == nil {
		if _, now, _ := instantOf(value); set && now {
			s.Seen.MarkTrouble = fmt.Sprintf(
				"annotation %s: it was set before the trigger: remove it, and set it when Redis breaks",
				v1alpha1.AnnotationMark)
		}
		return
	}
	s.Seen.AwaitedSince, s.Seen.AwaitedFor = began.Time, s.Fault.Spec.MarkWait()
	if s.Fault.Status.InjectedAt != nil {
		return
	}
	if set {
		s.Marked, s.Seen.MarkTrouble = markBy(s, value)
	}
	if s.Marked == nil {
		s.Marked = markByLoad(s)
	}
	s.Seen.Marked = s.Marked != nil
}

// instantOf parses the annotation.
func instantOf(value string) (at time.Time, now bool, err error) {
	if value == "" || value == "now" {
		return time.Time{}, true, nil
	}
	if len(value) > maxMark {
		return time.Time{}, false, fmt.Errorf("it has %d characters", len(value))
	}
	at, err = time.Parse(time.RFC3339Nano, value)
	return at, false, err
}

// markBy is the mark of the annotation, or why there is none.
func markBy(s *scope.Fault, value string) (*scope.Mark, string) {
	at, now, err := instantOf(value)
	began := s.Fault.Status.StartTime.Time
	switch {
	case err != nil:
		return nil, fmt.Sprintf("annotation %s: %.64q is no instant: set one such as %s, or now",
			v1alpha1.AnnotationMark, value, s.Now.UTC().Format(time.RFC3339Nano))
	case now:
		at = s.Now
	case at.After(s.Now.Add(clocksApart)):
		return nil, fmt.Sprintf("annotation %s: %s is in the future: it is %s here",
			v1alpha1.AnnotationMark, value, s.Now.UTC().Format(time.RFC3339Nano))
	case at.Before(began):
		return nil, fmt.Sprintf("annotation %s: %s is before the wait for it began, at %s",
			v1alpha1.AnnotationMark, value, began.UTC().Format(time.RFC3339Nano))
	case at.After(s.Now):
		at = s.Now
	}
	return &scope.Mark{
		At:     at,
		Offset: s.OffsetOf(at),
		By:     v1alpha1.MarkedByAnnotation,
		Why:    fmt.Sprintf("annotation %s: %q", v1alpha1.AnnotationMark, value),
	}, ""
}

// markByLoad is the mark of the load's record; nil if that shows nothing.
func markByLoad(s *scope.Fault) *scope.Mark {
	if s.Test == nil || s.Test.Status.StartTime == nil {
		return nil
	}
	since := s.OffsetOf(s.Fault.Status.StartTime.Time)
	if since == nil {
		return nil
	}
	var found *scope.Mark
	s.Run.Read(func(series *merged.Series) {
		options := impact.Options{MeasuredFrom: s.QuietFrom, Planned: children.Planned(&s.Test.Spec)}
		b, broken := anomaly.BreakageSince(series, *since, options, s.Others)
		if broken {
			found = &scope.Mark{
				At:     s.Now.Add(b.At - s.Elapsed()),
				Offset: &b.At,
				By:     v1alpha1.MarkedByLoad,
				Why:    b.Why,
			}
		}
	})
	return found
}

// await begins to wait until something else breaks Redis.
func (r *Reconciler) await(ctx context.Context, s *scope.Fault) state.Outcome {
	_ = r.reach().Connect(ctx, s) // without a login the servers are not followed
	status := &s.Fault.Status
	status.StartTime = new(metav1.NewMicroTime(r.Clock.Now()))
	status.LoadStartTime = s.Test.Status.StartTime
	status.Plan = planOf(s, nil)
	if s.Target != nil {
		status.Target = s.Target.DeepCopy()
	}
	log.FromContext(ctx).Info("Waiting until something else breaks Redis", "for",
		s.Fault.Spec.MarkWait())
	return r.watchForOnset(ctx, s)
}

// watchForOnset follows the pods and the servers while nothing has happened yet.
func (r *Reconciler) watchForOnset(ctx context.Context, s *scope.Fault) state.Outcome {
	if !r.Term.Find(s.Fault.UID).Watched() {
		_ = r.reach().Connect(ctx, s)
		r.watchPods(ctx, s)
		r.watchServers(s)
	}
	r.journal(s)
	s.Run.Keep(string(s.Fault.UID), max(0, s.Elapsed()-markedWithin-figures.KeepAround), math.MaxInt64)
	return state.Outcome{}
}

// mark stores the instant at which something else broke Redis, with what the pods have shown since
// then.
func (r *Reconciler) mark(ctx context.Context, s *scope.Fault) state.Outcome {
	status, m := &s.Fault.Status, s.Marked
	r.journal(s)
	at := metav1.NewMicroTime(m.At)
	status.InjectedAt, status.RevertedAt, status.MarkedBy = &at, &at, m.By
	if m.Offset != nil {
		status.InjectedOffset = new(v1alpha1.DurationOf(*m.Offset))
	}
	timeline.Append(status, m.At, timeline.Marked, "", m.Why)
	r.replay(s)
	log.FromContext(ctx).Info("Something else broke Redis", "at", m.At, "by", m.By, "why", m.Why)
	return state.Outcome{Again: true}
}
