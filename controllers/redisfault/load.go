package redisfault

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
)

// observeLoad reads the load test and its state.
func (r *Reconciler) observeLoad(ctx context.Context, s *scope) error {
	test, without, err := r.findLoad(ctx, s)
	if err != nil {
		return err
	}
	s.seen.LoadAbsent = s.reverter.LoadAbsent(test != nil, s.now)
	if test == nil {
		s.seen.Load = without
		return nil
	}
	s.test, s.run = test, r.Runs.Find(test.UID)
	s.followLoad()
	complete := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionComplete)
	if complete != nil {
		s.seen.LoadMessage = complete.Reason
	}
	unfit := s.unfitLoad(test)
	switch {
	case unfit != nil:
		s.seen.Load, s.seen.Problem = lifecycle.LoadPending, unfit
	case meta.IsStatusConditionTrue(test.Status.Conditions, v1alpha1.ConditionFailed):
		s.seen.Load = lifecycle.LoadFailed
		s.seen.LoadMessage = meta.FindStatusCondition(test.Status.Conditions,
			v1alpha1.ConditionFailed).Message
	case complete != nil && complete.Status == metav1.ConditionTrue:
		s.seen.Load = lifecycle.LoadEnded
	case test.Status.StartTime == nil:
		s.seen.Load = lifecycle.LoadPending
	case s.seen.Setting: // it stays until the load test is over, which its object shows
		s.seen.Load = lifecycle.LoadRunning
	// no load pod has that instant, or this process resumes the record, which no object shows
	case !s.run.BegunAt(test.Status.StartTime.Time):
		s.seen.Load, s.seen.LoadNext = lifecycle.LoadPending, r.Clock.Now().Add(lifecycle.FaultPoll)
	default:
		r.observeBegunLoad(s)
	}
	return nil
}

// unfitLoad is why no fault of this spec can be measured with a load test, however it runs; nil if
// one can.
func (s *scope) unfitLoad(test *v1alpha1.RedisLoadTest) *problem.Problem {
	why := ""
	switch {
	// nothing is measured against it
	case s.seen.Setting && (test.Spec.Target.IsSet() || s.fault.Spec.Target != nil):
		return nil
	case test.Spec.Load.Search != nil && !s.seen.Setting:
		why = fmt.Sprintf(
			"spec.loadTestRef.name: RedisLoadTest %s searches for a rate: its throughput is never steady, "+
				"so no fault can be measured with it", test.Name)
	case changesUnknown(&test.Spec) && !s.seen.Setting:
		why = fmt.Sprintf(
			"spec.loadTestRef.name: RedisLoadTest %s runs the tests of its benchmark one after the other, each for a part of load.requests: "+
				"when its throughput changes is not known. Set load.duration instead, order: Mixed or load.rate there",
			test.Name)
	case !test.Spec.Target.IsSet() && s.fault.Spec.Target == nil && s.fault.Status.InjectedAt == nil:
		why = fmt.Sprintf("spec.target: RedisLoadTest %s has no target: set the Redis of the fault",
			test.Name)
	case !s.seen.Recorded && faultrun.LimitsLosses(s.fault) &&
		(test.Spec.Verify == nil || !test.Spec.Verify.AcknowledgedWrites):
		why = fmt.Sprintf(
			"%s: RedisLoadTest %s does not verify its writes: set verify.acknowledgedWrites there, or "+
				"leave lostWrites out", faultrun.LostWritesField, test.Name)
	default:
		return nil
	}
	return &problem.Problem{
		Reason:  v1alpha1.ReasonInvalidSpec,
		Message: why,
		Lasting: true,
	}
}

// findLoad reads the load test that measures the fault. If there is none, it returns nil and the
// state of the load.
func (r *Reconciler) findLoad(
	ctx context.Context, s *scope,
) (*v1alpha1.RedisLoadTest, lifecycle.LoadState, error) {
	test := &v1alpha1.RedisLoadTest{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.fault.Namespace, Name: s.seen.LoadName},
		test)
	if apierrors.IsNotFound(err) || (err == nil && test.DeletionTimestamp != nil) {
		return nil, lifecycle.LoadMissing, nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read RedisLoadTest %s: %w", s.seen.LoadName, err)
	}
	if s.seen.OwnLoad && !metav1.IsControlledBy(test, s.fault) {
		return nil, lifecycle.LoadForeign, nil
	}
	if s.isAnotherLoad(test) {
		// the run that measured the fault has ended: this is another one of the same name
		return nil, lifecycle.LoadMissing, nil
	}
	return test, "", nil
}

// observeBegunLoad determines the state of a load that has begun.
func (r *Reconciler) observeBegunLoad(s *scope) {
	s.seen.LoadStart = s.test.Status.StartTime.Time
	s.seen.WarmUntil = s.seen.LoadStart.Add(measuredFrom(s.test))
	s.seen.Load = lifecycle.LoadRunning
	if s.run.Finished() {
		s.seen.Load = lifecycle.LoadEnded
	} else if r.Clock.Now().Before(s.seen.WarmUntil) {
		s.seen.Load, s.seen.LoadNext = lifecycle.LoadPending, s.seen.WarmUntil
	}
}

// loadTestName returns the name of the load test that measures a fault.
func loadTestName(f *v1alpha1.RedisFault) string {
	if f.Spec.LoadTestRef != nil {
		return f.Spec.LoadTestRef.Name
	}
	return children.ProbeName(f.Name)
}

// measuredFrom returns the end of the ramp-up and warm-up of a test, from its start.
func measuredFrom(test *v1alpha1.RedisLoadTest) time.Duration {
	var d time.Duration
	for _, part := range []*metav1.Duration{test.Spec.Load.RampUp, test.Spec.Load.WarmUp} {
		if part != nil {
			d += part.Duration
		}
	}
	return d
}

// changesUnknown reports whether a load runs the tests of a benchmark one after the other in a
// closed loop, each for a number of requests: a throughput before a fault can then not be compared
// with the one after it.
func changesUnknown(spec *v1alpha1.RedisLoadTestSpec) bool {
	b, load := spec.Workload.Benchmark, &spec.Load
	openLoop := load.Rate != nil || len(load.Stages) > 0 && load.Stages[0].Rate != nil
	return b != nil && b.Order == v1alpha1.BenchmarkSequential && len(b.Tests) > 1 && !openLoop &&
		load.Requests != nil
}
