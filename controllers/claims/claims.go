// Package claims reads which faults act and which wait for them: from the cache, or from the API
// server where a fault is about to begin.
package claims

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/fault/lock"
	"github.com/redquake/redquake/internal/target/paging"
)

// Reader reads faults.
type Reader struct {
	Client     client.Reader // cached
	APIReader  client.Reader // not cached
	Clock      clock.PassiveClock
	Namespaces []string // those that the operator watches; empty = all
}

// Holding is the field by which faults that act are selected.
const Holding = "status.holding"

// Known are the claims of the faults that act, and of those that wait, as far as the cache knows.
func (r Reader) Known(
	ctx context.Context, wanted lock.Claim, limits []lock.Limit,
) (held, waiting []lock.Claim, err error) {
	within := wanted.Fault.Namespace
	if ReachesOut(wanted, limits) {
		within = corev1.NamespaceAll
	}
	var all v1alpha1.RedisFaultList
	if err := r.Client.List(ctx, &all, client.InNamespace(within),
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list the faults: %w", err)
	}
	for i := range all.Items {
		f := &all.Items[i]
		if c, holds := lock.Held(f, TraitsOf(f)); holds {
			held = append(held, c)
		} else if c, waits := lock.Waiting(f); waits && inQueue(f) {
			waiting = append(waiting, c)
		}
	}
	return held, waiting, nil
}

// ReachesOut reports whether faults of other namespaces may be in a fault's way: nodes belong to no
// namespace, and a limit may be that of all.
func ReachesOut(wanted lock.Claim, limits []lock.Limit) bool {
	return len(wanted.Nodes) > 0 || wanted.Deployment != "" ||
		slices.ContainsFunc(limits, func(l lock.Limit) bool { return l.Of == v1alpha1.LimitFaults })
}

// inQueue reports whether nothing but other faults keeps a fault from being injected.
func inQueue(f *v1alpha1.RedisFault) bool {
	c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionComplete)
	return c != nil && WaitsForOthers(c.Reason) && !f.Spec.Suspend && !f.Spec.Abort &&
		f.DeletionTimestamp == nil
}

// WaitsForOthers reports whether the reason of a fault's wait lies in others: its cause is outside
// this fault.
func WaitsForOthers(reason string) bool {
	return reason == v1alpha1.ReasonWaitingForFault || reason == v1alpha1.ReasonWaitingForPolicy ||
		reason == v1alpha1.ReasonPolicyInvalid
}

// TraitsOf are the traits of a fault; of a type that only another version supports it is assumed
// that it changes whole workloads.
func TraitsOf(f *v1alpha1.RedisFault) contract.Traits {
	injector, err := fault.For(&f.Spec, contract.Deps{})
	if err != nil {
		return contract.Traits{Whole: true}
	}
	return injector.Traits()
}

// Beside reads what decides whether a recorded fault may begin: the claims of all faults that act,
// of its namespace or of all that this operator watches, and acted, another one that has acted on
// what this one holds, and was reverted, since this one was recorded. Then what was recorded may not
// be so any more, and what the other one has done could be taken for this one's work; "" = there is
// none. Nothing is known if of, the fault as it was read, is stale.
//
// A fault that has passed here once finds none that has acted later, whichever process asks: others
// wait for it.
func (r Reader) Beside(
	ctx context.Context, of *v1alpha1.RedisFault, own lock.Claim, everywhere bool,
) (held []lock.Claim, known bool, acted string, err error) {
	if everywhere {
		// first: what is reverted meanwhile has acted
		held, known, err = r.Acting(ctx, of, true)
		if err != nil || !known {
			return nil, known, "", err
		}
	}
	now := r.Clock.Now()
	var page v1alpha1.RedisFaultList
	err = paging.Each(ctx, r.APIReader, &page, func() bool {
		for i := range page.Items {
			f := &page.Items[i]
			known = known || f.UID == of.UID && f.ResourceVersion == of.ResourceVersion
			if c, holds := lock.Held(f, TraitsOf(f)); holds && !everywhere {
				held = append(held, c)
			}
			if acted == "" && actedSince(f, of, own, now) {
				acted = f.Name
			}
		}
		page.Items = nil // the next page must not be decoded over these
		return true
	}, client.InNamespace(of.Namespace))
	if err != nil {
		return nil, false, "", fmt.Errorf("list the faults: %w", err)
	}
	return held, known, acted, nil
}

// actedSince reports whether a fault has acted on what another one holds, and was reverted, since
// that was recorded. What lies in the future, as the clock was set back, would be found again and
// again.
func actedSince(f, of *v1alpha1.RedisFault, own lock.Claim, now time.Time) bool {
	status := &f.Status
	if f.UID == of.UID || status.InjectedAt == nil || status.RevertedAt == nil ||
		!status.RevertedAt.After(of.Status.StartTime.Time) || status.RevertedAt.After(now) {
		return false
	}
	other := lock.Wanted(f, TraitsOf(f), status.Targets, status.Workloads, status.Nodes, status.StartTime.Time)
	besideIt := f.Spec.Setting && other.Load != "" && other.Load == own.Load
	return !besideIt && lock.Contested(own, other) != ""
}

// Acting are the claims of all faults that act, from the API server: of the fault's namespace, or
// of all that this operator watches. of is the fault as it was read: the claims are not known if
// that is stale.
func (r Reader) Acting(
	ctx context.Context, of *v1alpha1.RedisFault, everywhere bool,
) (held []lock.Claim, known bool, err error) {
	namespaces := []string{of.Namespace}
	switch {
	case everywhere && len(r.Namespaces) > 0:
		namespaces = r.Namespaces
	case everywhere:
		namespaces = []string{corev1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		var page v1alpha1.RedisFaultList
		err := paging.Each(ctx, r.APIReader, &page, func() bool {
			for i := range page.Items {
				f := &page.Items[i]
				known = known || f.UID == of.UID && f.ResourceVersion == of.ResourceVersion
				if c, holds := lock.Held(f, TraitsOf(f)); holds {
					held = append(held, c)
				}
			}
			page.Items = nil // the next page must not be decoded over these
			return true
		}, client.InNamespace(namespace), client.MatchingFields{Holding: "true"})
		if err != nil {
			return nil, false, fmt.Errorf("list the faults that act: %w", err)
		}
	}
	return held, known, nil
}

// Hits are the pods that other faults have hit or will hit, as far as the cache knows.
func (r Reader) Hits(ctx context.Context, of *v1alpha1.RedisFault) ([]guard.Hit, error) {
	var all v1alpha1.RedisFaultList
	err := r.Client.List(ctx, &all, client.InNamespace(of.Namespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the faults: %w", err)
	}
	var hits []guard.Hit
	for i := range all.Items {
		if f := &all.Items[i]; f.UID != of.UID {
			hits = append(hits, guard.HitsOf(f, TraitsOf(f), of, r.Clock.Now())...)
		}
	}
	return hits, nil
}

// HitsNow are Hits with those of all faults that act, from the API server.
func (r Reader) HitsNow(ctx context.Context, of *v1alpha1.RedisFault) ([]guard.Hit, error) {
	var hits []guard.Hit
	acting := map[string]bool{}
	var page v1alpha1.RedisFaultList
	err := paging.Each(ctx, r.APIReader, &page, func() bool {
		for i := range page.Items {
			if f := &page.Items[i]; f.UID != of.UID {
				acting[f.Name] = true
				hits = append(hits, guard.HitsOf(f, TraitsOf(f), of, r.Clock.Now())...)
			}
		}
		page.Items = nil // the next page must not be decoded over these
		return true
	}, client.InNamespace(of.Namespace), client.MatchingFields{Holding: "true"})
	if err != nil {
		return nil, fmt.Errorf("list the faults that act: %w", err)
	}
	cached, err := r.Hits(ctx, of)
	for _, h := range cached {
		if !acting[h.Fault] {
			h.Over, h.Beside = true, false
			hits = append(hits, h)
		}
	}
	return hits, err
}

// Contender finds out whether another fault acts on what one wants, or has stopped to since an
// instant at which that one was observed: then something of what was observed may be the other
// one's work. on is what both want; "" = nothing.
func (r Reader) Contender(
	ctx context.Context, of *v1alpha1.RedisFault, wanted lock.Claim, observed time.Time,
) (other lock.Claim, on string, reverted bool, err error) {
	var page v1alpha1.RedisFaultList
	err = paging.Each(ctx, r.APIReader, &page, func() bool {
		for i := range page.Items {
			f := &page.Items[i]
			claim, holds := lock.Held(f, TraitsOf(f))
			switch both := lock.Contested(wanted, claim); {
			case holds && both != "":
				other, on, reverted = claim, both, false
				return false
			case f.UID != of.UID && f.Status.RevertedAt != nil && f.Status.RevertedAt.After(observed):
				reverted = true
				return false
			}
		}
		page.Items = nil // the next page must not be decoded over these
		return true
	}, client.InNamespace(of.Namespace))
	if err != nil {
		return lock.Claim{}, "", false, fmt.Errorf("list the faults: %w", err)
	}
	return other, on, reverted, nil
}
