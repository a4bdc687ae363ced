package redisfault

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/rules"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/problem"
)

// renew replaces a record that is too old to act on. Preparations of an injection (a taint, a
// holder) may exist nevertheless, and would not be in the new record: they are reverted first. If
// that fails, the injection fails in bounded time.
func (r *Reconciler) renew(ctx context.Context, s *scope) outcome {
	status := &s.fault.Status
	if old, err := state.IsStale(ctx, r.APIReader, "RedisFault", s.before); old || err != nil {
		return outcome{stale: old && err == nil, err: client.IgnoreNotFound(err)}
	}
	if err := r.connect(ctx, s); err != nil {
		return outcome{err: err}
	}
	r.Term.DropReverter(s.fault)
	if !s.revertPreparations(ctx) {
		return outcome{}
	}
	log.FromContext(ctx).Info("Selecting targets again: the record is too old to act on", "faultType",
		s.fault.Spec.Action.Type, "recordedAt", status.StartTime.Time)
	r.withdraw(s) // if it has to wait now, it is in nobody's way
	return r.record(ctx, s)
}

// revertPreparations reverts on all targets what of an injection may exist already, such as a
// taint, and reports whether nothing of it is left.
func (s *scope) revertPreparations(ctx context.Context) bool {
	clean := true
	for i := range s.fault.Status.Targets {
		t := &s.fault.Status.Targets[i]
		progress, err := s.injector.Revert(ctx, t)
		t.Progress = faultrun.Shorten(progress.Message, faultrun.MaxProgress, len(s.fault.Status.Targets))
		t.LastError = ""
		if err != nil {
			t.LastError = faultrun.Shorten(
				fmt.Sprintf("revert the preparations of a record that is not used: %v", err), faultrun.MaxError,
				len(s.fault.Status.Targets))
			s.logOf(ctx, t).V(1).Info("Retrying to revert the preparations", "cause", err.Error())
		}
		clean = clean && err == nil && progress.Complete()
	}
	return clean
}

// record selects the targets, checks them, and sets their records in the status, which report
// stores before the injection.
func (r *Reconciler) record(ctx context.Context, s *scope) outcome {
	if o, pass := r.checkStops(s); !pass {
		return o
	}
	if err := r.observeStopNow(ctx, s); err != nil || s.seen.Stopped != "" || s.seen.Withheld != nil {
		return outcome{again: err == nil, err: err} // the next reconcile ends the fault, or holds it
	}
	targets, err := r.selectTargets(ctx, s)
	occupied := occupiedBy(err)
	if err != nil && occupied == nil {
		return r.refuse(s, err)
	}
	workloads, warnings, err := s.workloadsOf(ctx, targets)
	if err != nil {
		return problemOf(err)
	}
	wanted := r.wanted(s, targets, workloads)
	if occupied != nil {
		return outcome{problem: s.waitBeside(wanted, occupied)}
	}
	if waits, err := r.takeTurn(ctx, s, wanted); err != nil {
		return outcome{err: err}
	} else if waits != nil {
		return outcome{
			problem: waits,
			ended:   waits.Lasting,
			failed:  waits.Lasting,
		}
	}
	if err := rules.Permitted(ctx, r.APIReader, s.fault); err != nil {
		return r.refuse(s, err)
	}
	// Not earlier: what another fault has changed is neither to be recorded nor a reason to refuse
	// this one.
	if err := s.preflight(ctx, targets); err != nil {
		return r.reconsider(ctx, s, wanted, r.refuse(s, err))
	}
	if !s.seen.Setting && !r.Runs.Claim(s.run, s.fault.UID, r.Clock.Now()) {
		return outcome{} // another fault on the same load was first
	}
	r.observeFrom(ctx, s)
	s.setRecord(targets, metav1.NewMicroTime(r.Clock.Now()))
	status := &s.fault.Status
	status.Warnings = fitting(append(warnings, s.warnings(ctx, targets)...))
	status.Target = s.target.DeepCopy()
	status.Workloads = workloads
	status.Plan = s.plan(targets)
	log.FromContext(ctx).Info("Selected targets", "faultType", s.fault.Spec.Action.Type, "targets",
		podNames(targets))
	return outcome{again: true}
}

// observeFrom begins to follow the pods of the target, and its servers, whose roles may have
// changed since an earlier record.
func (r *Reconciler) observeFrom(ctx context.Context, s *scope) {
	r.Term.StopObserving(s.fault)
	r.watchPods(ctx, s)
	if !s.seen.Setting {
		r.watchServers(s)
	}
}

// setRecord sets what is to be broken.
func (s *scope) setRecord(targets []v1alpha1.FaultTarget, now metav1.MicroTime) {
	for i := range targets {
		targets[i].IntendedAt = &now
	}
	status := &s.fault.Status
	status.Targets = targets
	status.StartTime = &now
	status.LoadTest = s.seen.LoadName
	if s.test != nil { // that of a setting may be created later
		status.LoadStartTime = s.test.Status.StartTime
		s.followLoad()
	}
	if w := status.Waiting; w != nil { // its place is kept until it acts: it may have to give way
		status.Waiting = &v1alpha1.WaitingFault{Since: w.Since}
	}
}

// selectTargets selects the targets behind the guards. They are returned also where other faults
// are in the way, with an error that is guard.Occupied.
func (r *Reconciler) selectTargets(ctx context.Context, s *scope) ([]v1alpha1.FaultTarget, error) {
	if test := s.measuringTest(); test != nil && s.traits.NewPod && losesReplacements(test) &&
		!(s.fault.Spec.DryRun && neverStarted(test)) {
		return nil, problem.Invalid(
			"RedisLoadTest %s has no target.service: its load goes to the addresses of pods, and it would "+
				"never connect to the replacement of a killed pod", test.Name)
	}
	if err := r.connect(ctx, s); err != nil {
		return nil, err
	}
	if status := &s.fault.Status; s.fault.Spec.Select.Pick == v1alpha1.PickRandom &&
		status.Seed == nil {
		status.Seed = new(guard.NewSeed())
	}
	others, err := r.claims().Hits(ctx, s.fault)
	if err != nil {
		return nil, err
	}
	targets, err := guard.Select(ctx, s.deps.Redis, &s.fault.Spec, s.traits, s.fault.Status.Seed,
		others)
	if err != nil {
		return targets, fmt.Errorf("select targets: %w", err)
	}
	return targets, nil
}

// preflight checks each target, and adds what its revert needs.
func (s *scope) preflight(ctx context.Context, targets []v1alpha1.FaultTarget) error {
	for i := range targets {
		if err := s.injector.Preflight(ctx, &targets[i]); err != nil {
			return fmt.Errorf("check target %s: %w", targets[i].Pod, err)
		}
	}
	return faultrun.CheckSize(targets)
}

// refuse is the outcome of targets that cannot be selected, or that the fault would not work on.
func (r *Reconciler) refuse(s *scope, err error) outcome {
	o := problemOf(err)
	if o.ended { // a witness of an earlier record may be running
		r.Term.StopObserving(s.fault)
	}
	return o
}

// losesReplacements reports whether a load has the addresses of pods only, which a replacement does
// not keep. Sentinels and the nodes of a cluster announce the new address.
func losesReplacements(test *v1alpha1.RedisLoadTest) bool {
	t := &test.Spec.Target
	found := test.Status.Target
	return t.Service == nil && len(t.Addresses) == 0 && t.Sentinel == nil &&
		t.Topology != v1alpha1.TopologyCluster &&
		(found == nil || found.Topology != v1alpha1.TopologyCluster)
}

func podNames(targets []v1alpha1.FaultTarget) []string {
	all := make([]string, len(targets))
	for i := range targets {
		all[i] = targets[i].Pod
	}
	return all
}
