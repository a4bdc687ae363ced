package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// lossesUnknown says whether the load that measured a finished fault may still tell what the fault lost: the ledger is read back when the
// load has ended, and that may be long after.
func lossesUnknown(f *v1alpha1.RedisFault) bool {
	i := f.Status.Impact
	return f.Spec.LoadTestRef != nil && f.Status.LoadTest != "" && f.DeletionTimestamp == nil && i != nil && i.LostWrites == nil
}

// observeLosses takes from a finished load test what a finished fault lost.
func (r *RedisFaultReconciler) observeLosses(ctx context.Context, s *faultScope) error {
	status := &s.fault.Status
	if !lossesUnknown(s.fault) {
		return nil
	}
	test := &v1alpha1.RedisLoadTest{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.fault.Namespace, Name: status.LoadTest}, test); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !isFinished(test.Status.Conditions) || !status.LoadStartTime.Equal(test.Status.StartTime) {
		return nil
	}
	for _, i := range test.Status.Impacts {
		if i.Fault == s.fault.Name && i.Impact != nil && i.InjectedAt.Equal(status.InjectedAt) {
			copyLoss(status.Impact, i.Impact)
		}
	}
	return nil
}

// reportLosses writes them into the status: the one thing that changes there once a fault is over.
func (r *RedisFaultReconciler) reportLosses(ctx context.Context, s *faultScope) error {
	if equality.Semantic.DeepEqual(s.before.Status, s.fault.Status) {
		return nil
	}
	return r.Client.Status().Patch(ctx, s.fault.DeepCopy(), onto(s.before))
}
