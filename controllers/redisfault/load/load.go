// Package load observes the load that measures a fault: which one it is, how it stands, and from
// when on its throughput can be a baseline.
package load

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/runs"
)

// Observer observes the loads of faults.
type Observer struct {
	Client client.Client
	Clock  clock.PassiveClock
	Runs   *runs.Registry
}

// Observe reads the load test and its state.
func (r *Observer) Observe(ctx context.Context, s *scope.Fault) error {
	test, without, err := r.findLoad(ctx, s)
	if err != nil {
		return err
	}
	s.Seen.LoadAbsent = s.Reverter.LoadAbsent(test != nil, s.Now)
	if test == nil {
		s.Seen.Load = without
		return nil
	}
	s.Test, s.Run = test, r.Runs.Find(test.UID)
	FollowLoad(s)
	complete := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionComplete)
	if complete != nil {
		s.Seen.LoadMessage = complete.Reason
	}
	unfit := unfitLoad(s, test)
	switch {
	case unfit != nil:
		s.Seen.Load, s.Seen.Problem = lifecycle.LoadPending, unfit
	case meta.IsStatusConditionTrue(test.Status.Conditions, v1alpha1.ConditionFailed):
		s.Seen.Load = lifecycle.LoadFailed
		s.Seen.LoadMessage = meta.FindStatusCondition(test.Status.Conditions,
			v1alpha1.ConditionFailed).Message
	case complete != nil && complete.Status == metav1.ConditionTrue:
		s.Seen.Load = lifecycle.LoadEnded
	case test.Status.StartTime == nil:
		s.Seen.Load = lifecycle.LoadPending
	case s.Seen.Setting: // it stays until the load test is over, which its object shows
		s.Seen.Load = lifecycle.LoadRunning
	// no load pod has that instant, or this process resumes the record, which no object shows
	case !s.Run.BegunAt(test.Status.StartTime.Time):
		s.Seen.Load, s.Seen.LoadNext = lifecycle.LoadPending, r.Clock.Now().Add(lifecycle.FaultPoll)
	default:
		r.observeBegunLoad(s)
	}
	return nil
}

// unfitLoad is why no fault of this spec can be measured with a load test, however it runs; nil if
// one can.
func unfitLoad(s *scope.Fault, test *v1alpha1.RedisLoadTest) *problem.Problem {
	why := ""
	switch {
	// nothing is measured against it
	case s.Seen.Setting && (test.Spec.Target.IsSet() || s.Fault.Spec.Target != nil):
		return nil
	case test.Spec.Load.Search != nil && !s.Seen.Setting:
		why = fmt.Sprintf(
			"spec.loadTestRef.name: RedisLoadTest %s searches for a rate: its throughput is never steady, "+
				"so no fault can be measured with it", test.Name)
	case changesUnknown(&test.Spec) && !s.Seen.Setting:
		why = fmt.Sprintf(
			"spec.loadTestRef.name: RedisLoadTest %s runs the tests of its benchmark one after the other, each for a part of load.requests: "+
				"when its throughput changes is not known. Set load.duration instead, order: Mixed or load.rate there",
			test.Name)
	case !test.Spec.Target.IsSet() && s.Fault.Spec.Target == nil && s.Fault.Status.InjectedAt == nil:
		why = fmt.Sprintf("spec.target: RedisLoadTest %s has no target: set the Redis of the fault",
			test.Name)
	case !s.Seen.Recorded && faultrun.LimitsLosses(s.Fault) &&
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
func (r *Observer) findLoad(
	ctx context.Context, s *scope.Fault,
) (*v1alpha1.RedisLoadTest, lifecycle.LoadState, error) {
	test := &v1alpha1.RedisLoadTest{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.Fault.Namespace, Name: s.Seen.LoadName},
		test)
	if apierrors.IsNotFound(err) || (err == nil && test.DeletionTimestamp != nil) {
		return nil, lifecycle.LoadMissing, nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read RedisLoadTest %s: %w", s.Seen.LoadName, err)
	}
	if s.Seen.OwnLoad && !metav1.IsControlledBy(test, s.Fault) {
		return nil, lifecycle.LoadForeign, nil
	}
	if isAnotherLoad(s, test) {
		// the run that measured the fault has ended: this is another one of the same name
		return nil, lifecycle.LoadMissing, nil
	}
	return test, "", nil
}

// observeBegunLoad determines the state of a load that has begun.
func (r *Observer) observeBegunLoad(s *scope.Fault) {
	s.Seen.LoadStart = s.Test.Status.StartTime.Time
	s.Seen.WarmUntil = s.Seen.LoadStart.Add(scope.MeasuredFrom(s.Test))
	s.Seen.Load = lifecycle.LoadRunning
	if s.Run.Finished() {
		s.Seen.Load = lifecycle.LoadEnded
	} else if r.Clock.Now().Before(s.Seen.WarmUntil) {
		s.Seen.Load, s.Seen.LoadNext = lifecycle.LoadPending, s.Seen.WarmUntil
	}
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

// isAnotherLoad reports whether a load test of the right name is not the one that a recorded fault
// belongs to. A load that is suspended and begins again is the same for a setting.
func isAnotherLoad(s *scope.Fault, test *v1alpha1.RedisLoadTest) bool {
	status := &s.Fault.Status
	switch {
	case status.StartTime == nil || status.LoadStartTime == nil:
		return false
	case s.Seen.Setting:
		return status.LoadTestUID != string(test.UID)
	}
	return !status.LoadStartTime.Equal(test.Status.StartTime)
}

// FollowLoad takes over which load runs with a recorded setting, and when it has started.
func FollowLoad(s *scope.Fault) {
	status := &s.Fault.Status
	if !s.Seen.Setting || status.StartTime == nil {
		return
	}
	status.LoadTestUID = string(s.Test.UID)
	if start := s.Test.Status.StartTime; start != nil {
		status.LoadStartTime, s.Seen.LoadStart = start, start.Time
	}
}
