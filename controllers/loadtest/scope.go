package loadtest

import (
	"cmp"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/search"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/runs"
)

// Reconciler runs load tests.
type Reconciler struct {
	Client    client.Client
	APIReader client.Reader // reads past the cache
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock
	Runs      *runs.Registry
	Image     string // of the load pods, unless the test names one
}

// scope is everything that one reconcile knows of a load test. It is filled once, before anything is decided.
type scope struct {
	test      *v1alpha1.RedisLoadTest // as read; its status is what will be written
	before    *v1alpha1.RedisLoadTest // as read, untouched
	plan      *plan.Plan              // nil when the spec cannot be planned (seen.Problem says why) or the test is over
	job       *batchv1.Job            // nil when there is none, or an old one is still going
	stale     bool                    // job was made for another generation of the spec, and the load has not begun
	pods      []corev1.Pod            // of job
	faults    []v1alpha1.RedisFault   // that say this test measures them
	run       *runs.Run               // nil before the load pods are made
	session   collect.Status          // of run
	lost      map[int]string          // load pods lost since the start: index to why
	result    *result.Load            // of the record so far
	searching *searching              // nil without spec.load.search, and before the load begins
	holes     []string                // what is missing in it, for people
	// serverCPULimit is that of Redis' containers, in cores, once the record is complete; 0 = none, or not known.
	serverCPULimit float64
	seen           lifecycle.LoadTest
}

// searching is what one reconcile knows of a test's search. The trials are those of the status: one is stored before any pod hears of it.
type searching struct {
	trials []search.Trial
	next   search.Next
	cut    string // why the search ends early; "" = it does not
}

// message says how the search stands.
func (s *searching) message() string { return cmp.Or(s.cut, s.next.Message) }

// ends says that the pods are to be told to end.
func (s *searching) ends() bool { return s.next.Over || s.cut != "" }

// outcome is what a step came to.
type outcome struct {
	again   bool             // look again at once
	deleted bool             // the object is no more
	problem *problem.Problem // found by the step: shown, and tried again
	ended   bool             // the object is over: figures and conditions are final
	failed  bool             // with ended: it failed
	err     error            // try again later
}
