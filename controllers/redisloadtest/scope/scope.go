// Package scope holds what one reconcile has read about a load test, and what a step has come to.
package scope

import (
	"cmp"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/search"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/runs"
)

// Started reports whether a start instant was sent, or will be: a load pod may have it.
func (s *Test) Started() bool {
	if s.Run == nil {
		return false
	}
	_, started := s.Run.Session.Started()
	return started
}

// Test is everything that one reconcile has read about a load test. It is filled once, before the
// decision.
type Test struct {
	Test   *v1alpha1.RedisLoadTest // as read; its status is changed and then written
	Before *v1alpha1.RedisLoadTest // as read, unchanged
	// nil when the spec cannot be planned (see Seen.Problem) or the test is over
	Plan *plan.Plan
	Job  *batchv1.Job // nil when there is none, or an old one is still being deleted
	// Job was made for another generation of the spec, and the load has not begun
	Stale     bool
	Pods      []corev1.Pod          // of Job
	Faults    []v1alpha1.RedisFault // whose status names this test
	Run       *runs.Run             // nil before the load pods are made
	Session   collect.Status        // of Run
	Lost      map[int]string        // load pods lost since the start: the reason by index
	Result    *result.Load          // of the record so far
	Searching *Searching            // nil without spec.load.search, and before the load begins
	Holes     []merged.Hole         // what is missing in the record
	// ServerCPULimit is that of the Redis containers, in cores; 0 = none, unknown, or the record is
	// not complete.
	ServerCPULimit float64
	// why an entry of spec.observe.pods has no readings, by name; nil = the metrics API was not read
	PodMessages map[string]string
	Seen        lifecycle.LoadTest
}

// Searching is the state of a search. Its trials are those of the status: a trial is stored before
// it is sent to the load pods.
type Searching struct {
	Trials []search.Trial
	Next   search.Next
	Cut    string // why the search ends early; "" = it does not
}

// Message describes the state of the search.
func (s *Searching) Message() string {
	return cmp.Or(s.Cut, s.Next.Message)
}

// Ends reports whether the load pods are to end.
func (s *Searching) Ends() bool {
	return s.Next.Over || s.Cut != ""
}

// MeasuredFrom returns the end of ramp-up and warm-up; 0 without a plan.
func (s *Test) MeasuredFrom() time.Duration {
	if s.Plan == nil {
		return 0
	}
	return s.Plan.Shape.MeasuredFrom()
}
