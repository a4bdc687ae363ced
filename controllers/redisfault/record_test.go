package redisfault

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/testing/apitest"
	"github.com/redquake/redquake/internal/testing/reverttest"
)

// The preparations of a record that is too old are reverted before targets are selected again; an error is shown.
func TestRenewRevertsWhatWasPrepared(t *testing.T) {
	stored := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "late"}}
	live := fakeclient.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(stored).Build()
	if err := live.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{
		Client:    live,
		APIReader: live,
		Clock:     testingclock.NewFakePassiveClock(time.Now()),
		Runs:      runs.NewRegistry(),
		Term:      faultrun.NewRegistry(nil).NewTerm(),
	}
	injector := &reverttest.Reverts{
		Answers: []reverttest.Answer{reverttest.Refusal, {Progress: contract.Underway("the node is untainted")}},
	}
	s := &scope.Fault{
		Fault:    stored.DeepCopy(),
		Before:   stored,
		Injector: injector,
		Seen:     lifecycle.Fault{Injection: lifecycle.Injection{Recorded: true}},
	}
	s.Fault.Status.Targets = []v1alpha1.FaultTarget{{Pod: "redis-0"}}
	if o := r.renew(t.Context(), s); o.Again || len(injector.Calls()) != 1 ||
		!strings.Contains(s.Fault.Status.Targets[0].LastError, "not used: no") {
		t.Errorf("%+v after %d calls: %+v", o, len(injector.Calls()), s.Fault.Status.Targets)
	}
	if o := r.renew(t.Context(), s); o.Again || s.Fault.Status.Targets[0].Progress == "" ||
		s.Fault.Status.Targets[0].LastError != "" {
		t.Errorf("%+v: %+v", o, s.Fault.Status.Targets)
	}
}

// A load with the addresses of pods never connects to a replacement, unless sentinels or the nodes of a cluster
// announce it.
func TestLosesReplacements(t *testing.T) {
	pods := &metav1.LabelSelector{}
	for _, tc := range []struct {
		name   string
		target v1alpha1.RedisTarget
		found  v1alpha1.Topology
		want   bool
	}{
		{"pods", v1alpha1.RedisTarget{PodSelector: pods}, v1alpha1.TopologyStandalone, true},
		{"pods, replicated", v1alpha1.RedisTarget{PodSelector: pods}, v1alpha1.TopologyReplication, true},
		{"pods of a cluster", v1alpha1.RedisTarget{PodSelector: pods}, v1alpha1.TopologyCluster, false},
		{
			"sentinels",
			v1alpha1.RedisTarget{PodSelector: pods, Sentinel: &v1alpha1.SentinelTarget{}},
			v1alpha1.TopologySentinel,
			false,
		},
		{
			"a Service",
			v1alpha1.RedisTarget{Service: &v1alpha1.ServiceReference{Name: "redis"}},
			v1alpha1.TopologyStandalone,
			false,
		},
		{"addresses", v1alpha1.RedisTarget{Addresses: []string{"redis:6379"}}, v1alpha1.TopologyStandalone, false},
	} {
		test := &v1alpha1.RedisLoadTest{
			Spec:   v1alpha1.RedisLoadTestSpec{Target: tc.target},
			Status: v1alpha1.RedisLoadTestStatus{Target: &v1alpha1.TargetStatus{Topology: tc.found}},
		}
		if got := losesReplacements(test); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}
