package redisloadtest

import (
	"cmp"
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/search"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/metrics"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/runs"
)

// Reconciler runs load tests.
type Reconciler struct {
	Client    client.Client
	APIReader client.Reader // not cached
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock
	Runs      *runs.Registry
	Image     string           // of the load pods, unless spec.pods.image is set
	Metrics   *metrics.Metrics // nil = nothing is counted
	// Restored returns once an operator that starts has tried to revert the faults that are overdue;
	// nil = there are none.
	Restored func(ctx context.Context)
}

// scope is everything that one reconcile has read about a load test. It is filled once, before the
// decision.
type scope struct {
	test   *v1alpha1.RedisLoadTest // as read; its status is changed and then written
	before *v1alpha1.RedisLoadTest // as read, unchanged
	// nil when the spec cannot be planned (see seen.Problem) or the test is over
	plan *plan.Plan
	job  *batchv1.Job // nil when there is none, or an old one is still being deleted
	// job was made for another generation of the spec, and the load has not begun
	stale     bool
	pods      []corev1.Pod          // of job
	faults    []v1alpha1.RedisFault // whose status names this test
	run       *runs.Run             // nil before the load pods are made
	session   collect.Status        // of run
	lost      map[int]string        // load pods lost since the start: the reason by index
	result    *result.Load          // of the record so far
	searching *searching            // nil without spec.load.search, and before the load begins
	holes     []merged.Hole         // what is missing in the record
	// serverCPULimit is that of the Redis containers, in cores; 0 = none, unknown, or the record is
	// not complete.
	serverCPULimit float64
	// why an entry of spec.observe.pods has no readings, by name; nil = the metrics API was not read
	podMessages map[string]string
	seen        lifecycle.LoadTest
}

// searching is the state of a search. Its trials are those of the status: a trial is stored before
// it is sent to the load pods.
type searching struct {
	trials []search.Trial
	next   search.Next
	cut    string // why the search ends early; "" = it does not
}

// message describes the state of the search.
func (s *searching) message() string {
	return cmp.Or(s.cut, s.next.Message)
}

// ends reports whether the load pods are to end.
func (s *searching) ends() bool {
	return s.next.Over || s.cut != ""
}

// outcome is the result of a step.
type outcome struct {
	again   bool             // requeue at once
	stale   bool             // nothing was done: the copy in the cache is older than what is stored
	deleted bool             // the object was deleted
	problem *problem.Problem // shown in the conditions; the step is retried
	ended   bool             // the test is finished: figures and conditions are final
	failed  bool             // with ended: it failed
	err     error            // retry with back-off
}
