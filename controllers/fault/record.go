package fault

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/problem"
)

// renew replaces a record that is too old to act on. Preparations of an injection (a cordon, a holder) may exist nevertheless, and would not be in
// the new record: they are reverted first. If that fails, the injection fails in bounded time.
func (r *Reconciler) renew(ctx context.Context, s *scope) outcome {
	status := &s.fault.Status
	if old, err := state.IsStale(ctx, r.APIReader, "RedisFault", s.before); old || err != nil {
		return outcome{again: true, err: client.IgnoreNotFound(err)}
	}
	if err := r.connect(ctx, s); err != nil {
		return outcome{err: err}
	}
	r.Reverters.drop(s.fault.UID) // of the old record
	clean := true
	for i := range status.Targets {
		t := &status.Targets[i]
		progress, err := s.injector.Revert(ctx, t)
		t.Progress, t.LastError = state.Truncate(progress.Message, 512), ""
		if err != nil {
			t.LastError = state.Truncate(fmt.Sprintf("revert the preparations of a record that is too old: %v", err), 1024)
			s.logOf(ctx, t).V(1).Info("Retrying to revert the preparations", "cause", err.Error())
		}
		clean = clean && err == nil && progress.Complete()
	}
	if !clean {
		return outcome{}
	}
	log.FromContext(ctx).Info("Selecting targets again: the record is too old to act on", "faultType", s.fault.Spec.Action.Type, "recordedAt", status.StartTime.Time)
	return r.record(ctx, s)
}

// record selects the targets, checks them, and sets their records in the status, which report stores before the injection.
func (r *Reconciler) record(ctx context.Context, s *scope) outcome {
	targets, err := r.selectTargets(ctx, s)
	if err != nil {
		o := problemOf(err)
		if o.ended { // a witness of an earlier record may be running
			r.stopWitness(s.fault.UID)
		}
		return o
	}
	workloads, err := s.workloadsOf(ctx, targets)
	if err != nil {
		return problemOf(err)
	}
	if waits, err := r.takeTurn(ctx, s, targets, workloads); err != nil || waits != nil {
		return outcome{problem: waits, err: err}
	}
	if !r.Runs.Claim(s.run, s.fault.UID, r.Clock.Now()) {
		return outcome{} // another fault on the same load was first
	}
	r.stopWitness(s.fault.UID) // that of an earlier record: the roles may have changed since
	r.startWitness(s)
	now := metav1.NewMicroTime(r.Clock.Now())
	for i := range targets {
		targets[i].IntendedAt = &now
	}
	status := &s.fault.Status
	status.Warnings = fault.Warnings(ctx, s.deps.Redis, s.traits, targets)
	status.Targets, status.StartTime, status.LoadTest, status.LoadStartTime = targets, &now, s.test.Name, s.test.Status.StartTime
	status.Target, status.Workloads, status.Waiting, status.Plan = s.target.DeepCopy(), workloads, nil, s.plan(targets)
	log.FromContext(ctx).Info("Selected targets", "faultType", s.fault.Spec.Action.Type, "targets", podNames(targets))
	return outcome{again: true}
}

func (r *Reconciler) selectTargets(ctx context.Context, s *scope) ([]v1alpha1.FaultTarget, error) {
	if test := s.measuringTest(); test != nil && s.traits.NewPod && losesReplacements(test) && !(s.fault.Spec.DryRun && neverStarted(test)) {
		return nil, problem.Invalid("RedisLoadTest %s has no target.service: its load goes to the addresses of pods, and it would never connect to the replacement of a killed pod", test.Name)
	}
	if err := r.connect(ctx, s); err != nil {
		return nil, err
	}
	if status := &s.fault.Status; s.fault.Spec.Select.Pick == v1alpha1.PickRandom && status.Seed == nil {
		status.Seed = new(guard.NewSeed())
	}
	others, err := r.otherHits(ctx, s)
	if err != nil {
		return nil, err
	}
	targets, err := guard.Select(ctx, s.deps.Redis, &s.fault.Spec, s.traits, s.fault.Status.Seed, others)
	for i := 0; err == nil && i < len(targets); i++ {
		err = s.injector.Preflight(ctx, &targets[i])
	}
	if err != nil {
		return nil, fmt.Errorf("select targets: %w", err)
	}
	return targets, nil
}

// losesReplacements reports whether a load has the addresses of pods only, which a replacement does not keep. Sentinels and the nodes of a cluster
// announce the new address.
func losesReplacements(test *v1alpha1.RedisLoadTest) bool {
	t := &test.Spec.Target
	found := test.Status.Target
	return t.Service == nil && len(t.Addresses) == 0 && t.Sentinel == nil && t.Topology != v1alpha1.TopologyCluster && (found == nil || found.Topology != v1alpha1.TopologyCluster)
}

func podNames(targets []v1alpha1.FaultTarget) []string {
	all := make([]string, len(targets))
	for i := range targets {
		all[i] = targets[i].Pod
	}
	return all
}
