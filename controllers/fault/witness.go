package fault

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target"
)

// errNotWatched means that the pods of a target are not known. A witness does not list them ten times a second instead.
var errNotWatched = errors.New("the pods of the target are not watched")

// startWitness polls the servers of the target from before the injection on. A failure to do so does not prevent the injection.
func (r *Reconciler) startWitness(s *scope) {
	if _, running := r.witnesses.Load(s.fault.UID); running || s.target == nil {
		return
	}
	// It outlives this reconcile. It ends when the fault settles; the timeout is for objects that are deleted before that.
	ctx, cancel := context.WithTimeout(context.Background(), s.traits.Lasts+s.fault.Spec.MarkWait()+s.fault.Spec.RecoveryDeadline.Duration+10*time.Minute)
	w := fault.Watch(ctx, s.deps.Redis, func(context.Context) ([]corev1.Pod, error) {
		pods, ok := s.deps.Watched.Pods()
		if !ok {
			return nil, errNotWatched
		}
		return pods, nil
	})
	r.witnesses.Store(s.fault.UID, &witness{Witness: w, cancel: cancel})
	if r.closed.Load() { // the manager stops during this reconcile
		r.stopWitness(s.fault.UID)
		return
	}
	w.AwaitLook() // the state before the injection is needed; one poll takes milliseconds
}

// witness polls the servers of one fault until it is cancelled.
type witness struct {
	*fault.Witness
	cancel context.CancelFunc
}

// recordSightings adds what the witness and the injector have observed to the timeline.
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
			continue // observed during an earlier attempt: not an effect of the fault
		}
		if seen.Coarse {
			at = eventTime(r.Clock.Now(), metav1.NewTime(at))
		}
		appendEvent(status, at, seen.Event, seen.Object, seen.Message)
	}
}

// Close ends the witnesses of all faults, and the watches of their pods. No other one starts.
func (r *Reconciler) Close() {
	r.closed.Store(true)
	r.Reverters.leads.Store(false)
	for _, running := range []*sync.Map{&r.witnesses, &r.podWatches} {
		running.Range(func(uid, _ any) bool {
			r.stopWitness(uid.(types.UID))
			return true
		})
	}
}

// stopWitness ends all that observes the servers and pods of a fault.
func (r *Reconciler) stopWitness(uid types.UID) {
	r.stopPodWatch(uid)
	r.journals.Delete(uid)
	if w, running := r.witnesses.LoadAndDelete(uid); running {
		w.(*witness).cancel()
	}
}
