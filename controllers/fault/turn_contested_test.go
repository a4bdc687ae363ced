package fault

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// A fault that gives way to another one on the same server does not take what that one has broken for its own work, and does not revert it.
func TestGiveWayToAFaultOnTheSameServer(t *testing.T) {
	recorded := func(name string, at time.Time) *v1alpha1.RedisFault {
		f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		f.Status = v1alpha1.RedisFaultStatus{StartTime: new(metav1.NewMicroTime(at)), Holding: new(true), Targets: []v1alpha1.FaultTarget{{Pod: "redis-0", UID: "u0"}}}
		return f
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	own, other := recorded("own", now.Add(time.Second)), recorded("other", now)
	own.UID, other.UID = "own", "other"
	reader := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(own, other).
		WithIndex(&v1alpha1.RedisFault{}, holding, func(client.Object) []string { return []string{"true"} }).Build()
	if err := reader.Get(t.Context(), client.ObjectKeyFromObject(own), own); err != nil {
		t.Fatal(err)
	}
	injector := &stubborn{}
	s := &scope{fault: own, before: own.DeepCopy(), injector: brokenTarget{injector}, seen: lifecycle.Fault{Recorded: true}}
	o, may := (&Reconciler{APIReader: reader}).mayAct(t.Context(), s)
	if may || o.err != nil || o.problem == nil || o.problem.Reason != v1alpha1.ReasonWaitingForFault || own.Status.StartTime != nil || len(injector.reverts) > 0 {
		t.Errorf("it may act: %t, %+v, recorded at %v, %d reverts", may, o, own.Status.StartTime, len(injector.reverts))
	}
}
