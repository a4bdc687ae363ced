package turns

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/fault/lock"
)

// WokenBy maps a fault that does not act, any more, or a setting that is in force, to
// those that wait for it, and to the first of those that wait for each limit.
func (r *Turns) WokenBy(
	ctx context.Context, object client.Object,
) []reconcile.Request {
	f, ok := object.(*v1alpha1.RedisFault)
	if !ok || f.Status.Holding != nil && f.DeletionTimestamp == nil && !lock.InForce(f) {
		return nil
	}
	queues := map[v1alpha1.PolicyLimit][]lock.Claim{}
	requests := scope.RequestsFor(ctx, r.Reach.Client, corev1.NamespaceAll,
		func(other *v1alpha1.RedisFault) bool {
			w, waits := lock.Waiting(other)
			if !waits || state.IsFinished(other.Status.Conditions) {
				return false
			}
			if w.Limit != "" && (w.Limit != v1alpha1.LimitNamespaceFaults ||
				other.Namespace == f.Namespace) {
				queues[w.Limit] = append(queues[w.Limit], w)
			}
			return other.Status.Waiting.For == lock.NameOf(client.ObjectKeyFromObject(f), other.Namespace)
		})
	for _, queue := range queues {
		for _, c := range lock.First(queue, wakeLimit) {
			requests = append(requests, reconcile.Request{NamespacedName: c.Fault})
		}
	}
	return requests
}

// wakeLimit is how many of the faults that wait for the same limit check it when a fault ends: more
// than one may begin, and all of a long queue would be too many.
const wakeLimit = 8
