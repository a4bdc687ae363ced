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
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/fault/lock"
	"github.com/redquake/redquake/internal/problem"
)

// One fault at a time acts on a server, a workload or a node. A fault that would be the second one waits before it records anything. Two that have passed
// that check at the same time are both recorded, but not injected: before its first injection each reads from the API server, not from a cache, which
// faults are recorded. At least one of them sees the other, as that read comes after its own record, and one gives way.

// holding is the field by which faults that act are selected.
const holding = "status.holding"

// observeTurn determines whether a fault that waits for another one still has to.
func (r *Reconciler) observeTurn(ctx context.Context, s *scope) error {
	wanted, waits := lock.Waiting(s.fault)
	if !waits {
		return nil
	}
	other, on, blocked, err := r.blocker(ctx, wanted)
	if blocked {
		s.seen.Blocked = lock.Message(wanted, other, on)
	}
	return err
}

// blocker returns the fault that another one has to wait for, as far as the cache knows.
func (r *Reconciler) blocker(ctx context.Context, wanted lock.Claim) (other lock.Claim, on string, blocked bool, err error) {
	within := wanted.Fault.Namespace
	if len(wanted.Nodes) > 0 {
		within = "" // all: nodes belong to no namespace
	}
	var all v1alpha1.RedisFaultList
	if err := r.Client.List(ctx, &all, client.InNamespace(within)); err != nil {
		return lock.Claim{}, "", false, fmt.Errorf("list the faults: %w", err)
	}
	var held, waiting []lock.Claim
	for i := range all.Items {
		f := &all.Items[i]
		if c, holds := lock.Held(f, traitsOf(f)); holds {
			held = append(held, c)
		} else if c, waits := lock.Waiting(f); waits && inQueue(f) {
			waiting = append(waiting, c)
		}
	}
	other, on, blocked = lock.Blocker(wanted, held, waiting)
	return other, on, blocked, nil
}

// inQueue reports whether nothing but other faults keeps a fault from being injected.
func inQueue(f *v1alpha1.RedisFault) bool {
	c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionComplete)
	return c != nil && c.Reason == v1alpha1.ReasonWaitingForFault && !f.Spec.Suspend && !f.Spec.Abort && f.DeletionTimestamp == nil
}

// traitsOf are the traits of a fault; of a type that only another version supports it is assumed that it changes whole workloads.
func traitsOf(f *v1alpha1.RedisFault) contract.Traits {
	injector, err := fault.For(&f.Spec, contract.Deps{})
	if err != nil {
		return contract.Traits{Whole: true}
	}
	return injector.Traits()
}

// takeTurn reports whether a fault can act on targets. If not, its status says what it waits for.
func (r *Reconciler) takeTurn(ctx context.Context, s *scope, targets []v1alpha1.FaultTarget, workloads []string) (problemToShow *problem.Problem, err error) {
	since := metav1.NewMicroTime(r.Clock.Now())
	if w := s.fault.Status.Waiting; w != nil {
		since = w.Since
	}
	wanted := lock.Wanted(s.fault, s.traits, targets, workloads, since.Time)
	other, on, blocked, err := r.blocker(ctx, wanted)
	if err != nil || !blocked {
		return nil, err
	}
	return s.waitFor(wanted, other, on), nil
}

// waitFor puts the fault into the queue.
func (s *scope) waitFor(wanted, other lock.Claim, on string) *problem.Problem {
	s.fault.Status.Waiting = &v1alpha1.WaitingFault{
		For: lock.NameOf(other.Fault, s.fault.Namespace), Since: metav1.NewMicroTime(wanted.Since), Pods: wanted.Pods, Workloads: wanted.Workloads, Whole: wanted.Whole, Nodes: wanted.Nodes,
	}
	return &problem.Problem{Reason: v1alpha1.ReasonWaitingForFault, Message: lock.Message(wanted, other, on)}
}

// otherHits are the pods that other faults keep from serving.
func (r *Reconciler) otherHits(ctx context.Context, s *scope) ([]guard.Hit, error) {
	var all v1alpha1.RedisFaultList
	if err := r.Client.List(ctx, &all, client.InNamespace(s.fault.Namespace)); err != nil {
		return nil, fmt.Errorf("list the faults: %w", err)
	}
	var hits []guard.Hit
	for i := range all.Items {
		f := &all.Items[i]
		if f.UID == s.fault.UID || f.Status.Holding == nil || !traitsOf(f).Silences {
			continue
		}
		for _, t := range f.Status.Targets {
			hits = append(hits, guard.Hit{Pod: t.Pod, Fault: f.Name})
		}
	}
	return hits, nil
}

// mayHit asks the guard again just before a target is hit: since the selection roles may have changed, and copies may have been lost.
func (r *Reconciler) mayHit(ctx context.Context, s *scope, t *v1alpha1.FaultTarget) error {
	others, err := r.otherHits(ctx, s)
	if err != nil {
		return err
	}
	return guard.Check(ctx, s.deps.Redis, &s.fault.Spec, s.traits, t, s.fault.Status.Targets, others)
}

// workloadsOf are the controllers of the pods that a fault acts on: of its targets, or of all pods of the Redis if it changes roles or sizes.
func (s *scope) workloadsOf(ctx context.Context, targets []v1alpha1.FaultTarget) ([]string, error) {
	pods, err := s.deps.AllPods(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the controllers of the pods: %w", err)
	}
	var all []string
	for i := range pods {
		owner := metav1.GetControllerOf(&pods[i])
		hit := slices.ContainsFunc(targets, func(t v1alpha1.FaultTarget) bool { return t.UID == string(pods[i].UID) })
		if owner == nil || !hit && !s.traits.Whole {
			continue
		}
		if name := owner.Kind + "/" + owner.Name; !slices.Contains(all, name) && len(all) < 64 {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all, nil
}

// actsAlone reports whether the record of a fault, which has injected nothing yet, is the only one of what it acts on. If not, the outcome is what to do.
func (r *Reconciler) actsAlone(ctx context.Context, s *scope) (outcome, bool) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var acting v1alpha1.RedisFaultList
	if err := r.APIReader.List(ctx, &acting, client.InNamespace(s.fault.Namespace), client.MatchingFields{holding: "true"}); err != nil {
		return outcome{err: fmt.Errorf("list the faults that act: %w", err)}, false
	}
	own := slices.IndexFunc(acting.Items, func(f v1alpha1.RedisFault) bool { return f.UID == s.fault.UID })
	if own < 0 || acting.Items[own].ResourceVersion != s.before.ResourceVersion { // the copy in the cache is stale
		return outcome{again: true}, false
	}
	claim, _ := lock.Held(s.fault, s.traits)
	for i := range acting.Items {
		f := &acting.Items[i]
		other, holds := lock.Held(f, traitsOf(f))
		on := lock.Contested(claim, other)
		if !holds || on == "" {
			continue
		}
		if !lock.Yields(claim, other) {
			return outcome{problem: &problem.Problem{Reason: v1alpha1.ReasonWaitingForFault, Message: lock.Message(claim, other, on)}}, false
		}
		log.FromContext(ctx).Info("Giving way to another fault that was recorded at the same time", "other", other.Fault.Name)
		shown := s.waitFor(claim, other, on)
		s.withdraw()
		r.stopWitness(s.fault.UID)
		return outcome{problem: shown}, false
	}
	return outcome{}, true
}

// withdraw removes the record of a fault that has injected nothing.
func (s *scope) withdraw() {
	status := &s.fault.Status
	status.StartTime, status.Targets, status.Target, status.Workloads, status.Warnings, status.LoadStartTime, status.Holding, status.Plan = nil, nil, nil, nil, nil, nil, nil, nil
}

// holds reports whether other faults have to wait for this one.
func (s *scope) holds(over bool) *bool {
	if over || !isRecorded(&s.fault.Status) || s.fault.Status.RevertedAt != nil {
		return nil
	}
	return new(true)
}

// RequestsForFault maps a fault that does not act, any more, to those that wait for it.
func (r *Reconciler) RequestsForFault(ctx context.Context, object client.Object) []reconcile.Request {
	f, is := object.(*v1alpha1.RedisFault)
	if !is || f.Status.Holding != nil && f.DeletionTimestamp == nil {
		return nil
	}
	return r.requestsFor(ctx, corev1.NamespaceAll, func(other *v1alpha1.RedisFault) bool {
		w := other.Status.Waiting
		return w != nil && other.Status.StartTime == nil && !state.IsFinished(other.Status.Conditions) &&
			w.For == lock.NameOf(client.ObjectKeyFromObject(f), other.Namespace)
	})
}
