package redisfault

import (
	"context"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
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

// mark is the instant at which something else broke Redis: t0 of a fault of type External.
type mark struct {
	at     time.Time
	offset *time.Duration // since the start of the load; nil = uncertain
	by     v1alpha1.MarkSource
	why    string
}

// observeMark determines whether something else has broken Redis. A usable annotation precedes what
// the load shows. Once t0 is stored it does not change.
func (r *Reconciler) observeMark(s *scope) {
	if !s.traits.External {
		return
	}
	value, set := s.fault.Annotations[v1alpha1.AnnotationMark]
	began := s.fault.Status.StartTime
	if began == nil {
		if _, now, _ := instantOf(value); set && now {
			s.seen.MarkTrouble = fmt.Sprintf(
				"annotation %s: it was set before the trigger: remove it, and set it when Redis breaks",
				v1alpha1.AnnotationMark)
		}
		return
	}
	s.seen.AwaitedSince, s.seen.AwaitedFor = began.Time, s.fault.Spec.MarkWait()
	if s.fault.Status.InjectedAt != nil {
		return
	}
	if set {
		s.marked, s.seen.MarkTrouble = s.markBy(value)
	}
	if s.marked == nil {
		s.marked = s.markByLoad()
	}
	s.seen.Marked = s.marked != nil
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
func (s *scope) markBy(value string) (*mark, string) {
	at, now, err := instantOf(value)
	began := s.fault.Status.StartTime.Time
	switch {
	case err != nil:
		return nil, fmt.Sprintf("annotation %s: %.64q is no instant: set one such as %s, or now",
			v1alpha1.AnnotationMark, value, s.now.UTC().Format(time.RFC3339Nano))
	case now:
		at = s.now
	case at.After(s.now.Add(clocksApart)):
		return nil, fmt.Sprintf("annotation %s: %s is in the future: it is %s here",
			v1alpha1.AnnotationMark, value, s.now.UTC().Format(time.RFC3339Nano))
	case at.Before(began):
		return nil, fmt.Sprintf("annotation %s: %s is before the wait for it began, at %s",
			v1alpha1.AnnotationMark, value, began.UTC().Format(time.RFC3339Nano))
	case at.After(s.now):
		at = s.now
	}
	return &mark{
		at:     at,
		offset: s.offsetOf(at),
		by:     v1alpha1.MarkedByAnnotation,
		why:    fmt.Sprintf("annotation %s: %q", v1alpha1.AnnotationMark, value),
	}, ""
}

// markByLoad is the mark of the load's record; nil if that shows nothing.
func (s *scope) markByLoad() *mark {
	if s.test == nil || s.test.Status.StartTime == nil {
		return nil
	}
	since := s.offsetOf(s.fault.Status.StartTime.Time)
	if since == nil {
		return nil
	}
	var found *mark
	s.run.Read(func(series *merged.Series) {
		options := impact.Options{MeasuredFrom: s.quietFrom, Planned: children.Planned(&s.test.Spec)}
		if b, broken := anomaly.BreakageSince(series, *since, options, s.others); broken {
			found = &mark{
				at:     s.now.Add(b.At - s.elapsed()),
				offset: &b.At,
				by:     v1alpha1.MarkedByLoad,
				why:    b.Why,
			}
		}
	})
	return found
}

// elapsed is the time since the start of the load.
func (s *scope) elapsed() time.Duration {
	if at := s.offsetOf(s.now); at != nil {
		return *at
	}
	return s.now.Sub(s.test.Status.StartTime.Time)
}

// await begins to wait until something else breaks Redis.
func (r *Reconciler) await(ctx context.Context, s *scope) outcome {
	_ = r.connect(ctx, s) // without a login the servers are not followed
	status := &s.fault.Status
	status.StartTime = new(metav1.NewMicroTime(r.Clock.Now()))
	status.LoadStartTime = s.test.Status.StartTime
	status.Plan = s.plan(nil)
	if s.target != nil {
		status.Target = s.target.DeepCopy()
	}
	log.FromContext(ctx).Info("Waiting until something else breaks Redis", "for",
		s.fault.Spec.MarkWait())
	return r.lookOut(ctx, s)
}

// lookOut follows the pods and the servers while nothing has happened yet.
func (r *Reconciler) lookOut(ctx context.Context, s *scope) outcome {
	if !r.Term.Find(s.fault.UID).Watched() {
		_ = r.connect(ctx, s)
		r.watchPods(ctx, s)
		r.watchServers(s)
	}
	r.journal(s)
	s.run.Keep(string(s.fault.UID), max(0, s.elapsed()-markedWithin-keepAround), math.MaxInt64)
	return outcome{}
}

// mark stores the instant at which something else broke Redis, with what the pods have shown since
// then.
func (r *Reconciler) mark(ctx context.Context, s *scope) outcome {
	status, m := &s.fault.Status, s.marked
	r.journal(s)
	at := metav1.NewMicroTime(m.at)
	status.InjectedAt, status.RevertedAt, status.MarkedBy = &at, &at, m.by
	if m.offset != nil {
		status.InjectedOffset = new(v1alpha1.MicrosecondsOf(*m.offset))
	}
	timeline.Append(status, m.at, timeline.Marked, "", m.why)
	r.replay(s)
	log.FromContext(ctx).Info("Something else broke Redis", "at", m.at, "by", m.by, "why", m.why)
	return outcome{again: true}
}
