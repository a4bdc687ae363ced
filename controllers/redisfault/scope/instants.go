package scope

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/summary"
)

// SinceInjection returns the time from the injection to an instant, even if the operator's wall
// clock was set in between.
func (s *Fault) SinceInjection(wall time.Time) time.Duration {
	if offset := s.Fault.Status.InjectedOffset; offset != nil {
		if at, _, ok := s.Run.At(wall); ok {
			return at - offset.Duration
		}
	}
	return wall.Sub(s.Fault.Status.InjectedAt.Time)
}

// OffsetNow returns the time since the start of the load, by the clock of the run if it can be
// read, else by the wall clock; nil without a load.
func (s *Fault) OffsetNow(wall time.Time) *time.Duration {
	if at, ok := s.Run.Elapsed(); ok {
		return &at
	}
	if start := s.Fault.Status.LoadStartTime; start != nil {
		return new(wall.Sub(start.Time))
	}
	return nil
}

// OffsetOf is OffsetNow for an instant that was read before. It returns nil if the wall clock was
// set since then and the instant is uncertain.
func (s *Fault) OffsetOf(wall time.Time) *time.Duration {
	at, uncertainty, ok := s.Run.At(wall)
	switch {
	case !ok:
		return s.OffsetNow(wall)
	case uncertainty > state.MaxSkew:
		return nil
	}
	return &at
}

// MeasuredFrom returns the end of the ramp-up and warm-up of a test, from its start.
func MeasuredFrom(test *v1alpha1.RedisLoadTest) time.Duration {
	var d time.Duration
	for _, part := range []*metav1.Duration{test.Spec.Load.RampUp, test.Spec.Load.WarmUp} {
		if part != nil {
			d += part.Duration
		}
	}
	return d
}

// ActedOn is when a fault acted, counted from the start of its load: from its injection until it
// had settled.
func ActedOn(status *v1alpha1.RedisFaultStatus, start time.Time) summary.Window {
	w := summary.Window{From: state.InjectedAfter(status, start), To: math.MaxInt64}
	if over := SettledAt(status); over != nil {
		w.To = over.Sub(start)
	}
	return w
}

// Elapsed is the time since the start of the load.
func (s *Fault) Elapsed() time.Duration {
	if at := s.OffsetOf(s.Now); at != nil {
		return *at
	}
	return s.Now.Sub(s.Test.Status.StartTime.Time)
}

// WindowsOf is when a fault explains what a load shows, counted from the load's start: from its
// injection until it has settled; none if it was not injected.
func WindowsOf(status *v1alpha1.RedisFaultStatus, start time.Time) []summary.Window {
	if status.InjectedAt == nil {
		return nil
	}
	w := ActedOn(status, start)
	w.From -= time.Second
	return []summary.Window{w}
}

// SettledAt returns when a fault was reverted and its recovery was evaluated, so that another
// baseline can begin; nil before that.
func SettledAt(status *v1alpha1.RedisFaultStatus) *metav1.MicroTime {
	if status.SettledTime != nil {
		return status.SettledTime
	}
	return status.CompletionTime
}

// Met reports whether two faults on a load acted, or the load recovered from them, at the same
// time: the figures of each contain what the other one did.
func Met(a, b *v1alpha1.RedisFaultStatus) bool {
	if a.InjectedAt == nil || b.InjectedAt == nil {
		return false
	}
	before := func(over *metav1.MicroTime, at *metav1.MicroTime) bool {
		return over != nil && !at.Before(over)
	}
	return !before(SettledAt(a), b.InjectedAt) && !before(SettledAt(b), a.InjectedAt)
}
