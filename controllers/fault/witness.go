package fault

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target"
)

// startWitness has the servers of a fault's target looked at from before the injection on. That it cannot is no reason not to inject.
func (r *Reconciler) startWitness(s *scope) {
	if _, running := r.witnesses.Load(s.fault.UID); running || s.target == nil {
		return
	}
	// It outlives this reconcile. Its end is finish, or this limit where the object goes without one.
	ctx, cancel := context.WithTimeout(context.Background(), s.traits.Lasts+s.fault.Spec.RecoveryDeadline.Duration+10*time.Minute)
	w, err := fault.Watch(ctx, s.deps.Redis, r.Client)
	if err != nil {
		cancel()
		return
	}
	r.witnesses.Store(s.fault.UID, &witness{Witness: w, cancel: cancel})
	w.AwaitLook() // what was before must be known: one look takes milliseconds
}

type witness struct {
	*fault.Witness
	cancel context.CancelFunc
}

// recordSightings puts what the witness and the injector saw into the timeline.
func (r *Reconciler) recordSightings(ctx context.Context, s *scope) {
	status := &s.fault.Status
	if status.InjectedAt == nil {
		return
	}
	var all []contract.Sighting
	if w, running := r.witnesses.Load(s.fault.UID); running {
		all = w.(*witness).Seen()
	}
	if follower, ok := s.injector.(contract.Follower); ok {
		ctx, cancel := context.WithTimeout(ctx, target.AskTimeout)
		defer cancel()
		for i := range status.Targets {
			all = append(all, follower.Follow(ctx, &status.Targets[i])...)
		}
	}
	for _, seen := range all {
		at := seen.At
		if !seen.Coarse && at.Before(status.InjectedAt.Time) {
			continue // the servers were looked at from an earlier attempt on: not the fault's doing
		}
		if seen.Coarse {
			at = eventTime(r.Clock.Now(), metav1.NewTime(at))
		}
		appendEvent(status, at, seen.Event, seen.Object, seen.Message)
	}
}

// Close ends everything that runs besides the reconciles.
func (r *Reconciler) Close() {
	r.witnesses.Range(func(uid, _ any) bool {
		r.stopWitness(uid.(types.UID))
		return true
	})
}

func (r *Reconciler) stopWitness(uid types.UID) {
	if w, running := r.witnesses.LoadAndDelete(uid); running {
		w.(*witness).cancel()
	}
}
