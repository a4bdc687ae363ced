package fault

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/lock"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target"
)

// One fault at a time acts on a server, a workload or a node. A fault that would be the second one waits before it records anything. Two that have passed
// that check at the same time are both recorded, but not injected: before its first injection each reads from the API server, not from a cache, which
// faults are recorded. At least one of them sees the other, as that read comes after its own record, and one gives way.

// holding is the field by which faults that act are selected.
const holding = "status.holding"

// observeTurn determines whether a fault that waits for others still has to. Its status names what it waits for now: that ends its wait.
func (r *Reconciler) observeTurn(ctx context.Context, s *scope) error {
	wanted, waits := lock.Waiting(s.fault)
	if !waits {
		return nil
	}
	held, waiting, err := r.claims(ctx, wanted, s.limits)
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

// claims are those of the faults that act, and of those that wait, as far as the cache knows.
func (r *Reconciler) claims(ctx context.Context, wanted lock.Claim, limits []lock.Limit) (held, waiting []lock.Claim, err error) {
	within := wanted.Fault.Namespace
	if reachesOut(wanted, limits) {
		within = corev1.NamespaceAll
	}
	var all v1alpha1.RedisFaultList
	if err := r.Client.List(ctx, &all, client.InNamespace(within), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list the faults: %w", err)
	}
	for i := range all.Items {
		f := &all.Items[i]
		if c, holds := lock.Held(f, traitsOf(f)); holds {
			held = append(held, c)
		} else if c, waits := lock.Waiting(f); waits && inQueue(f) {
			waiting = append(waiting, c)
		}
	}
	return held, waiting, nil
}

// reachesOut reports whether faults of other namespaces may be in a fault's way: nodes belong to no namespace, and a limit may be that of all.
func reachesOut(wanted lock.Claim, limits []lock.Limit) bool {
	return len(wanted.Nodes) > 0 || slices.ContainsFunc(limits, func(l lock.Limit) bool { return l.Of == v1alpha1.LimitFaults })
}

// inQueue reports whether nothing but other faults keeps a fault from being injected.
func inQueue(f *v1alpha1.RedisFault) bool {
	c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionComplete)
	return c != nil && waitsForOthers(c.Reason) && !f.Spec.Suspend && !f.Spec.Abort && f.DeletionTimestamp == nil
}

// waitsForOthers reports whether the reason of a fault's wait lies in others: it is no trouble of its own.
func waitsForOthers(reason string) bool {
	return reason == v1alpha1.ReasonWaitingForFault || reason == v1alpha1.ReasonWaitingForPolicy || reason == v1alpha1.ReasonPolicyInvalid
}

// traitsOf are the traits of a fault; of a type that only another version supports it is assumed that it changes whole workloads.
func traitsOf(f *v1alpha1.RedisFault) contract.Traits {
	injector, err := fault.For(&f.Spec, contract.Deps{})
	if err != nil {
		return contract.Traits{Whole: true}
	}
	return injector.Traits()
}

// wanted is what a fault is about to act on.
func (r *Reconciler) wanted(s *scope, targets []v1alpha1.FaultTarget, workloads []string) lock.Claim {
	since := metav1.NewMicroTime(r.Clock.Now())
	if w := s.fault.Status.Waiting; w != nil {
		since = w.Since
	}
	return lock.Wanted(s.fault, s.traits, targets, workloads, since.Time)
}

// reconsider returns the outcome of a fault that was refused for good, unless another one has acted since it was this one's turn: what that has changed may
// be the reason. Then the fault waits for it, or selects its targets again.
func (r *Reconciler) reconsider(ctx context.Context, s *scope, wanted lock.Claim, refused outcome) outcome {
	if !refused.ended {
		return refused
	}
	reconsidered := refused
	var page v1alpha1.RedisFaultList
	err := target.EachPage(ctx, r.APIReader, &page, func() bool {
		for i := range page.Items {
			f := &page.Items[i]
			other, holds := lock.Held(f, traitsOf(f))
			switch on := lock.Contested(wanted, other); {
			case holds && on != "":
				reconsidered = outcome{problem: s.waitFor(wanted, other, on)}
				return false
			case f.UID != s.fault.UID && f.Status.RevertedAt != nil && f.Status.RevertedAt.After(s.now):
				reconsidered = outcome{again: true}
				return false
			}
		}
		page.Items = nil // the next page must not be decoded over these
		return true
	}, client.InNamespace(s.fault.Namespace))
	if err != nil {
		return outcome{err: fmt.Errorf("list the faults: %w", err)}
	}
	return reconsidered
}

// takeTurn reports whether a fault can act, as far as the cache knows the others. If not, its status says what it waits for.
func (r *Reconciler) takeTurn(ctx context.Context, s *scope, wanted lock.Claim) (problemToShow *problem.Problem, err error) {
	limits, err := r.rulesFor(ctx, s, r.livePolicy)
	if err != nil {
		return problem.From(err)
	}
	held, waiting, err := r.claims(ctx, wanted, limits)
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
			return tooManyNodes(wanted, limit), nil
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
	return &problem.Problem{Reason: v1alpha1.ReasonWaitingForFault, Message: lock.Message(wanted, other, on)}
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
		Since: since, Pods: wanted.Pods, Workloads: wanted.Workloads, Whole: wanted.Whole, Nodes: wanted.Nodes,
	}
}

// maxWorkloads is how many controllers a status lists.
const maxWorkloads = 64

// workloadsOf are the controllers of the pods that a fault acts on, by name: of its targets, or of all pods of the Redis if it changes roles or sizes. A
// warning says how many do not fit into the status.
func (s *scope) workloadsOf(ctx context.Context, targets []v1alpha1.FaultTarget) (all, warnings []string, err error) {
	pods, err := s.deps.AllPods(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read the controllers of the pods: %w", err)
	}
	for i := range pods {
		owner := metav1.GetControllerOf(&pods[i])
		hit := slices.ContainsFunc(targets, func(t v1alpha1.FaultTarget) bool { return t.UID == string(pods[i].UID) })
		if owner == nil || !hit && !s.traits.Whole {
			continue
		}
		all = append(all, owner.Kind+"/"+owner.Name)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if n := len(all); n > maxWorkloads {
		all = all[:maxWorkloads]
		warnings = []string{fmt.Sprintf("status.workloads lists %d of the %d controllers, by name: a fault that acts only on others does not wait for this one", maxWorkloads, n)}
	}
	return all, warnings, nil
}

// mayAct reports whether a fault that is recorded, and that has injected nothing yet, can begin: the policy permits it, and it acts alone on what it acts on.
// If not, the outcome is what to do.
func (r *Reconciler) mayAct(ctx context.Context, s *scope) (outcome, bool) {
	ctx, cancel := context.WithTimeout(ctx, faultrun.CallTimeout)
	defer cancel()
	limits, err := r.rulesFor(ctx, s, r.livePolicy)
	if found, err := problem.From(err); err != nil {
		return outcome{err: err}, false
	} else if found != nil {
		return r.giveWay(ctx, s, func() *problem.Problem { return found })
	}
	own, _ := lock.Held(s.fault, s.traits)
	held, known, err := r.acting(ctx, s, reachesOut(own, limits))
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
			return outcome{problem: &problem.Problem{Reason: v1alpha1.ReasonWaitingForFault, Message: lock.Message(own, other, on)}}, false
		}
		// The other one was recorded earlier, or has injected: this one has not passed here before, so whatever is broken is not its work.
		return r.leave(ctx, s, s.waitFor(own, other, on)), false
	}
	for _, limit := range limits {
		fits, yields := limit.Turn(own, held)
		switch {
		case yields:
			return r.giveWay(ctx, s, func() *problem.Problem { return s.waitForLimit(own, limit, limit.Beside(own, held)) })
		case !fits:
			return outcome{problem: &problem.Problem{Reason: v1alpha1.ReasonWaitingForPolicy, Message: limit.Beside(own, held)}}, false
		}
	}
	if other, err := r.actedSince(ctx, s, own); err != nil {
		return outcome{err: err}, false
	} else if other != "" {
		return r.selectAgain(ctx, s, fmt.Sprintf("RedisFault %s has acted on them since they were recorded", other)), false
	}
	return outcome{}, true
}

// actedSince is another fault that has acted on what this one holds, and was reverted, since this one was recorded: what was recorded may not be so any more,
// and what the other one has done could be taken for this one's work. A fault that has passed here once finds none later, whichever process asks: others wait
// for it. What lies in the future, as the clock was set back, would be found again and again. "" = there is none.
func (r *Reconciler) actedSince(ctx context.Context, s *scope, own lock.Claim) (name string, err error) {
	now := r.Clock.Now()
	var page v1alpha1.RedisFaultList
	err = target.EachPage(ctx, r.APIReader, &page, func() bool {
		for i := range page.Items {
			f := &page.Items[i]
			status := &f.Status
			if f.UID == s.fault.UID || status.InjectedAt == nil || status.RevertedAt == nil || !status.RevertedAt.After(s.fault.Status.StartTime.Time) || status.RevertedAt.After(now) {
				continue
			}
			other := lock.Wanted(f, traitsOf(f), status.Targets, status.Workloads, status.StartTime.Time)
			if besideIt := f.Spec.Setting && other.Load != "" && other.Load == own.Load; !besideIt && lock.Contested(own, other) != "" {
				name = f.Name
				return false
			}
		}
		page.Items = nil // the next page must not be decoded over these
		return true
	}, client.InNamespace(s.fault.Namespace))
	if err != nil {
		return "", fmt.Errorf("list the faults: %w", err)
	}
	return name, nil
}

// acting are the claims of all faults that act, from the API server: of the fault's namespace, or of all that this operator watches. It is not known if the
// cache's copy of the fault itself is stale.
func (r *Reconciler) acting(ctx context.Context, s *scope, everywhere bool) (held []lock.Claim, known bool, err error) {
	namespaces := []string{s.fault.Namespace}
	switch {
	case everywhere && len(r.Namespaces) > 0:
		namespaces = r.Namespaces
	case everywhere:
		namespaces = []string{corev1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		var page v1alpha1.RedisFaultList
		err := target.EachPage(ctx, r.APIReader, &page, func() bool {
			for i := range page.Items {
				f := &page.Items[i]
				known = known || f.UID == s.fault.UID && f.ResourceVersion == s.before.ResourceVersion
				if c, holds := lock.Held(f, traitsOf(f)); holds {
					held = append(held, c)
				}
			}
			page.Items = nil // the next page must not be decoded over these
			return true
		}, client.InNamespace(namespace), client.MatchingFields{holding: "true"})
		if err != nil {
			return nil, false, fmt.Errorf("list the faults that act: %w", err)
		}
	}
	return held, known, nil
}

// giveWay removes the record of a fault that cannot begin, so that others can: first it reverts what a process that has ended may have prepared. If a target is
// broken already, the fault has begun, and goes on.
func (r *Reconciler) giveWay(ctx context.Context, s *scope, why func() *problem.Problem) (outcome, bool) {
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
	log.FromContext(ctx).Info("Giving way: the fault was recorded, but cannot begin", "reason", shown.Reason, "cause", shown.Message)
	r.withdraw(s)
	return outcome{problem: shown, ended: shown.Lasting, failed: shown.Lasting}
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
	status.StartTime, status.Targets, status.Workloads, status.Warnings, status.LoadStartTime, status.Holding, status.Plan = nil, nil, nil, nil, nil, nil, nil
	status.LoadTestUID = ""
}

// holds reports whether other faults have to wait for this one.
func (s *scope) holds(over bool) *bool {
	if over || !isRecorded(&s.fault.Status) || s.fault.Status.RevertedAt != nil {
		return nil
	}
	return new(true)
}

// RequestsForFault maps a fault that does not act, any more, or a setting that is in force, to those that wait for it, and to the first of those that wait for each limit.
func (r *Reconciler) RequestsForFault(ctx context.Context, object client.Object) []reconcile.Request {
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

// woken is how many of the faults that wait for the same limit check it when a fault ends: more than one may begin, and all of a long queue would be too many.
const woken = 8
