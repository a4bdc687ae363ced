package redisfault

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/load"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/redisfault/turns"
	"github.com/redquake/redquake/controllers/rules"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/problem"
)

// renew replaces a record that is too old to act on. Preparations of an injection (a taint, a
// holder) may exist nevertheless, and would not be in the new record: they are reverted first. If
// that fails, the injection fails in bounded time.
func (r *Reconciler) renew(ctx context.Context, s *scope.Fault) state.Outcome {
	status := &s.Fault.Status
	o, fresh := state.Fresh(ctx, r.APIReader, "RedisFault", s.Before)
	if !fresh {
		return o
	}
	if err := r.reach().Connect(ctx, s); err != nil {
		return state.Outcome{Err: err}
	}
	r.Term.DropReverter(s.Fault)
	if !turns.RevertPreparations(ctx, s) {
		return state.Outcome{}
	}
	log.FromContext(ctx).Info("Selecting targets again: the record is too old to act on", "faultType",
		s.Fault.Spec.Action.Type, "recordedAt", status.StartTime.Time)
	r.turns().Withdraw(s) // if it has to wait now, it is in nobody's way
	return r.recordFresh(ctx, s)
}

// record records the targets of a fault that has none yet. A copy from before the record is seen
// just after it: its checks would ask and touch servers that the next step is about to hit.
func (r *Reconciler) record(ctx context.Context, s *scope.Fault) state.Outcome {
	o, fresh := state.Fresh(ctx, r.APIReader, "RedisFault", s.Before)
	if !fresh {
		return o
	}
	return r.recordFresh(ctx, s)
}

// recordFresh selects the targets, checks them, and sets their records in the status, which report
// stores before the injection.
func (r *Reconciler) recordFresh(ctx context.Context, s *scope.Fault) state.Outcome {
	if o, pass := r.reach().CheckStops(s); !pass {
		return o
	}
	err := r.ending().ObserveStopNow(ctx, s)
	if err != nil || s.Seen.Stopped != "" || s.Seen.Withheld != nil {
		// the next reconcile ends the fault, or holds it
		return state.Outcome{Again: err == nil, Err: err}
	}
	selected, err := r.selectTargets(ctx, s)
	occupied := turns.OccupiedBy(err)
	if err != nil && occupied == nil {
		return r.refuse(s, err)
	}
	targets := selected.Targets
	workloads, warnings := turns.WorkloadsOf(selected, s.Traits)
	wanted := r.turns().Wanted(s, targets, workloads, selected.Nodes)
	if occupied != nil {
		return state.Outcome{Problem: turns.WaitBeside(s, wanted, occupied)}
	}
	waits, err := r.turns().TakeTurn(ctx, s, wanted)
	if err != nil {
		return state.Outcome{Err: err}
	} else if waits != nil {
		return state.Outcome{
			Problem: waits,
			Ended:   waits.Lasting,
			Failed:  waits.Lasting,
		}
	}
	err = rules.Permitted(ctx, r.APIReader, s.Fault)
	if err != nil {
		return r.refuse(s, err)
	}
	// Not earlier: what another fault has changed is neither to be recorded nor a reason to refuse
	// this one.
	if err := preflight(ctx, s, targets); err != nil {
		return r.turns().Reconsider(ctx, s, wanted, r.refuse(s, err))
	}
	if !s.Seen.Setting && !r.Runs.Claim(s.Run, r.Clock.Now(), s.Fault.UID, s.Partners...) {
		return state.Outcome{} // another fault on the same load was first
	}
	r.observeFrom(ctx, s)
	setRecord(s, targets, metav1.NewMicroTime(r.Clock.Now()))
	status := &s.Fault.Status
	status.Warnings = fitting(append(warnings, warningsOf(ctx, s, targets)...))
	status.Target = s.Target.DeepCopy()
	status.Workloads = workloads
	status.Nodes = selected.Nodes
	status.Plan = planOf(s, targets)
	log.FromContext(ctx).Info("Selected targets", "faultType", s.Fault.Spec.Action.Type, "targets",
		scope.PodNames(targets))
	return state.Outcome{Again: true}
}

// observeFrom begins to follow the pods of the target, and its servers, whose roles may have
// changed since an earlier record.
func (r *Reconciler) observeFrom(ctx context.Context, s *scope.Fault) {
	r.Term.StopObserving(s.Fault)
	r.watchPods(ctx, s)
	if !s.Seen.Setting {
		r.watchServers(s)
	}
}

// setRecord sets what is to be broken.
func setRecord(s *scope.Fault, targets []v1alpha1.FaultTarget, now metav1.MicroTime) {
	for i := range targets {
		targets[i].IntendedAt = &now
	}
	status := &s.Fault.Status
	status.Targets = targets
	status.StartTime = &now
	status.LoadTest = s.Seen.LoadName
	if since := s.Seen.ActSince; !since.IsZero() {
		status.BesideSince = new(metav1.NewMicroTime(since))
		status.BesideUIDs = nil
		for _, uid := range s.Partners {
			status.BesideUIDs = append(status.BesideUIDs, string(uid))
		}
	}
	if s.Test != nil { // that of a setting may be created later
		status.LoadStartTime = s.Test.Status.StartTime
		load.FollowLoad(s)
	}
	if w := status.Waiting; w != nil { // its place is kept until it acts: it may have to yield
		status.Waiting = &v1alpha1.WaitingFault{Since: w.Since}
	}
}

// selectTargets selects the targets behind the guards. They are returned also where other faults
// are in the way, with an error that is guard.Occupied.
func (r *Reconciler) selectTargets(
	ctx context.Context, s *scope.Fault,
) (selected guard.Selection, err error) {
	test := measuringTest(s)
	if test != nil && s.Traits.NewPod && losesReplacements(test) &&
		!(s.Fault.Spec.DryRun && neverStarted(test)) {
		return selected, problem.Invalid(
			"RedisLoadTest %s has no target.service: its load goes to the addresses of pods, and it would "+
				"never connect to the replacement of a killed pod", test.Name)
	}
	if err := r.reach().Connect(ctx, s); err != nil {
		return selected, err
	}
	status := &s.Fault.Status
	if s.Fault.Spec.Select.Pick == v1alpha1.PickRandom && status.Seed == nil {
		status.Seed = new(guard.NewSeed())
	}
	others, err := r.claims().Hits(ctx, s.Fault)
	if err != nil {
		return selected, err
	}
	selected, err = guard.Select(ctx, s.Deps.Redis, &s.Fault.Spec, s.Traits, s.Fault.Status.Seed,
		others)
	if err != nil {
		return selected, fmt.Errorf("select targets: %w", err)
	}
	return selected, nil
}

// preflight checks each target, and adds what its revert needs.
func preflight(ctx context.Context, s *scope.Fault, targets []v1alpha1.FaultTarget) error {
	for i := range targets {
		err := s.Injector.Preflight(ctx, &targets[i])
		if err != nil {
			return fmt.Errorf("check target %s: %w", targets[i].Pod, err)
		}
	}
	return faultrun.CheckSize(targets)
}

// refuse is the outcome of targets that cannot be selected, or that the fault would not work on.
func (r *Reconciler) refuse(s *scope.Fault, err error) state.Outcome {
	o := scope.ProblemOf(err)
	if o.Ended { // a witness of an earlier record may be running
		r.Term.StopObserving(s.Fault)
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
