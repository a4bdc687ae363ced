package redisfault

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/claims"
	"github.com/redquake/redquake/controllers/rules"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/fault/lock"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/problem"
)

// One fault at a time acts on a server, a workload or a node. A second fault waits before it
// records anything. Two that have passed that check at the same time are both recorded, but not
// injected: before its first injection each reads from the API server, not from a cache, which
// faults are recorded. At least one of them sees the other, as that read comes after its own
// record, and one gives way.

// claims reads the other faults.
func (r *Reconciler) claims() claims.Reader {
	return claims.Reader{
		Client:     r.Client,
		APIReader:  r.APIReader,
		Clock:      r.Clock,
		Namespaces: r.Namespaces,
	}
}

// observeTurn determines whether a fault that waits for others still has to. Its status names what
// it waits for now: that ends its wait.
func (r *Reconciler) observeTurn(ctx context.Context, s *scope) error {
	wanted, waits := lock.Waiting(s.fault)
	if !waits {
		return nil
	}
	held, waiting, err := r.claims().Known(ctx, wanted, s.limits)
	if err != nil {
		return err
	}
	if other, on, blocked := lock.Blocker(wanted, held, waiting); blocked {
		s.seen.Blocked = s.waitFor(wanted, other, on).Message
		return nil
	}
	if s.seen.Blocked = s.besideStill(held); s.seen.Blocked != "" {
		return nil
	}
	for _, limit := range s.limits {
		if why, full := limit.Full(wanted, held, waiting); full {
			s.seen.OverLimit = s.waitForLimit(wanted, limit, why).Message
			return nil
		}
	}
	return nil
}

// wanted is what a fault is about to act on.
func (r *Reconciler) wanted(
	s *scope, targets []v1alpha1.FaultTarget, workloads []string,
) lock.Claim {
	since := metav1.NewMicroTime(r.Clock.Now())
	if w := s.fault.Status.Waiting; w != nil {
		since = w.Since
	}
	return lock.Wanted(s.fault, s.traits, targets, workloads, since.Time)
}

// reconsider returns the outcome of a fault that was refused for good, unless another one has acted
// since it was this one's turn: what that has changed may be the reason. Then the fault waits for
// it, or selects its targets again.
func (r *Reconciler) reconsider(
	ctx context.Context, s *scope, wanted lock.Claim, refused outcome,
) outcome {
	if !refused.ended {
		return refused
	}
	other, on, reverted, err := r.claims().Contender(ctx, s.fault, wanted, s.now)
	switch {
	case err != nil:
		return outcome{err: err}
	case on != "":
		return outcome{problem: s.waitFor(wanted, other, on)}
	case reverted:
		return outcome{again: true}
	}
	return refused
}

// takeTurn reports whether a fault can act, as far as the cache knows the others. If not, its
// status says what it waits for.
func (r *Reconciler) takeTurn(
	ctx context.Context, s *scope, wanted lock.Claim,
) (problemToShow *problem.Problem, err error) {
	limits, err := r.rules().For(ctx, s.fault, r.rules().Live)
	if err != nil {
		return problem.From(err)
	}
	held, waiting, err := r.claims().Known(ctx, wanted, limits)
	if err != nil {
		return nil, err
	}
	if clash := clashWith(wanted, held); clash != nil {
		return clash, nil
	}
	if other, on, blocked := lock.Blocker(wanted, held, waiting); blocked {
		return s.waitFor(wanted, other, on), nil
	}
	for _, limit := range limits {
		if limit.Never(wanted) {
			return rules.TooManyNodes(wanted, limit), nil
		}
		if why, full := limit.Full(wanted, held, waiting); full {
			return s.waitForLimit(wanted, limit, why), nil
		}
	}
	return nil, nil
}

// waitFor puts the fault into the queue for what another one acts on.
func (s *scope) waitFor(wanted, other lock.Claim, on string) *problem.Problem {
	s.queueUp(wanted)
	s.fault.Status.Waiting.For = lock.NameOf(other.Fault, s.fault.Namespace)
	return &problem.Problem{
		Reason:  v1alpha1.ReasonWaitingForFault,
		Message: lock.Message(wanted, other, on),
	}
}

// waitForLimit puts the fault into the queue for a limit.
func (s *scope) waitForLimit(wanted lock.Claim, limit lock.Limit, why string) *problem.Problem {
	s.queueUp(wanted)
	s.fault.Status.Waiting.Limit = limit.Of
	return &problem.Problem{Reason: v1alpha1.ReasonWaitingForPolicy, Message: why}
}

// queueUp keeps the place of a fault that has waited before.
func (s *scope) queueUp(wanted lock.Claim) {
	since := metav1.NewMicroTime(wanted.Since)
	if w := s.fault.Status.Waiting; w != nil {
		since = w.Since
	}
	s.fault.Status.Waiting = &v1alpha1.WaitingFault{
		Since:     since,
		Pods:      wanted.Pods,
		Workloads: wanted.Workloads,
		Whole:     wanted.Whole,
		Nodes:     wanted.Nodes,
	}
}

// maxWorkloads is how many controllers a status lists.
const maxWorkloads = 64

// workloadsOf are the controllers of the pods that a fault acts on, by name: of its targets, or of
// all pods of the Redis if it changes roles or sizes. A warning says how many do not fit into the
// status.
func (s *scope) workloadsOf(
	ctx context.Context, targets []v1alpha1.FaultTarget,
) (all, warnings []string, err error) {
	pods, err := s.deps.AllPods(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read the controllers of the pods: %w", err)
	}
	for i := range pods {
		owner := metav1.GetControllerOf(&pods[i])
		hit := slices.ContainsFunc(targets, func(t v1alpha1.FaultTarget) bool {
			return t.UID == string(pods[i].UID)
		})
		if owner == nil || !hit && !s.traits.Whole {
			continue
		}
		all = append(all, owner.Kind+"/"+owner.Name)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if n := len(all); n > maxWorkloads {
		all = all[:maxWorkloads]
		warnings = []string{
			fmt.Sprintf(
				"status.workloads lists %d of the %d controllers, by name: a fault that acts only on others "+
					"does not wait for this one", maxWorkloads, n),
		}
	}
	return all, warnings, nil
}

// mayAct reports whether a fault that is recorded, and that has injected nothing yet, can begin:
// the policy permits it, and it acts alone on what it acts on.
// If not, the outcome is what to do.
func (r *Reconciler) mayAct(ctx context.Context, s *scope) (outcome, bool) {
	ctx, cancel := context.WithTimeout(ctx, faultrun.CallTimeout)
	defer cancel()
	limits, err := r.rules().For(ctx, s.fault, r.rules().Live)
	if found, err := problem.From(err); err != nil {
		return outcome{err: err}, false
	} else if found != nil {
		return r.giveWay(ctx, s, func() *problem.Problem { return found })
	}
	own, _ := lock.Held(s.fault, s.traits)
	held, known, err := r.claims().Acting(ctx, s.before, claims.ReachesOut(own, limits))
	if err != nil || !known {
		return outcome{again: err == nil, err: err}, false
	}
	if clash := clashWith(own, held); clash != nil {
		return r.giveWay(ctx, s, func() *problem.Problem { return clash })
	}
	for _, other := range held {
		on := lock.Contested(own, other)
		if on == "" {
			continue
		}
		if !lock.Yields(own, other) {
			return outcome{
				problem: &problem.Problem{
					Reason:  v1alpha1.ReasonWaitingForFault,
					Message: lock.Message(own, other, on),
				},
			}, false
		}
		// The other one was recorded earlier, or has injected: this one has not passed here before, so
		// whatever is broken is not its work.
		return r.leave(ctx, s, s.waitFor(own, other, on)), false
	}
	for _, limit := range limits {
		fits, yields := limit.Turn(own, held)
		switch {
		case yields:
			return r.giveWay(ctx, s, func() *problem.Problem {
				return s.waitForLimit(own, limit,
					limit.Beside(own, held))
			})
		case !fits:
			return outcome{
				problem: &problem.Problem{
					Reason:  v1alpha1.ReasonWaitingForPolicy,
					Message: limit.Beside(own, held),
				},
			}, false
		}
	}
	if other, err := r.claims().ActedSince(ctx, s.fault, own); err != nil {
		return outcome{err: err}, false
	} else if other != "" {
		return r.selectAgain(ctx, s,
			fmt.Sprintf("RedisFault %s has acted on them since they were recorded", other)), false
	}
	return outcome{}, true
}

// giveWay removes the record of a fault that cannot begin, so that others can: first it reverts
// what a process that has ended may have prepared. If a target is broken already, the fault has
// begun, and goes on.
func (r *Reconciler) giveWay(
	ctx context.Context, s *scope, why func() *problem.Problem,
) (outcome, bool) {
	if err := r.connect(ctx, s); err != nil {
		return outcome{err: err}, false
	}
	for i := range s.fault.Status.Targets {
		if begun, err := s.injector.Begun(ctx, &s.fault.Status.Targets[i]); err != nil {
			return outcome{err: err}, false
		} else if begun {
			return outcome{}, true
		}
	}
	if !s.revertPreparations(ctx) {
		return outcome{}, false
	}
	return r.leave(ctx, s, why()), false
}

// leave removes the record of a fault that has done nothing.
func (r *Reconciler) leave(ctx context.Context, s *scope, shown *problem.Problem) outcome {
	log.FromContext(ctx).Info("Giving way: the fault was recorded, but cannot begin", "reason",
		shown.Reason, "cause", shown.Message)
	r.withdraw(s)
	return outcome{
		problem: shown,
		ended:   shown.Lasting,
		failed:  shown.Lasting,
	}
}

// withdraw removes the record of a fault that has injected nothing, and what belongs to it.
func (r *Reconciler) withdraw(s *scope) {
	r.Term.StopObserving(s.fault)
	r.Term.DropReverter(s.fault)
	s.withdraw()
}

// withdraw removes the record from the status.
func (s *scope) withdraw() {
	status := &s.fault.Status
	status.StartTime = nil
	status.Targets = nil
	status.Workloads = nil
	status.Warnings = nil
	status.LoadStartTime = nil
	status.Holding = nil
	status.Plan = nil
	status.LoadTestUID = ""
}

// holds reports whether other faults have to wait for this one.
func (s *scope) holds(over bool) *bool {
	if over || !isRecorded(&s.fault.Status) || s.fault.Status.RevertedAt != nil {
		return nil
	}
	return new(true)
}

// RequestsForFault maps a fault that does not act, any more, or a setting that is in force, to
// those that wait for it, and to the first of those that wait for each limit.
func (r *Reconciler) RequestsForFault(
	ctx context.Context, object client.Object,
) []reconcile.Request {
	f, is := object.(*v1alpha1.RedisFault)
	if !is || f.Status.Holding != nil && f.DeletionTimestamp == nil && !lock.InForce(f) {
		return nil
	}
	queues := map[v1alpha1.PolicyLimit][]lock.Claim{}
	requests := r.requestsFor(ctx, corev1.NamespaceAll, func(other *v1alpha1.RedisFault) bool {
		w, waits := lock.Waiting(other)
		if !waits || state.IsFinished(other.Status.Conditions) {
			return false
		}
		if w.Limit != "" && (w.Limit != v1alpha1.LimitNamespaceFaults || other.Namespace == f.Namespace) {
			queues[w.Limit] = append(queues[w.Limit], w)
		}
		return other.Status.Waiting.For == lock.NameOf(client.ObjectKeyFromObject(f), other.Namespace)
	})
	for _, queue := range queues {
		for _, c := range lock.First(queue, woken) {
			requests = append(requests, reconcile.Request{NamespacedName: c.Fault})
		}
	}
	return requests
}

// woken is how many of the faults that wait for the same limit check it when a fault ends: more
// than one may begin, and all of a long queue would be too many.
const woken = 8
