package redisfault

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/rules"
	"github.com/redquake/redquake/internal/policy"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/testing/apitest"
)

func configMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: policy.ConfigMap}, Data: data}
}

// Without a policy the defaults apply; one that cannot be used permits nothing, and an API server that does not answer
// is no policy.
func TestPolicyOfTheCluster(t *testing.T) {
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, policy.ConfigMap,
		errors.New("no such right"))
	for _, tc := range []struct {
		name           string
		stored         *corev1.ConfigMap
		fails          error
		reason, phrase string
	}{
		{"none", nil, nil, "", ""},
		{"a good one", configMap(map[string]string{policy.Key: "version: v1alpha1\nmaxFaults: 4\n"}), nil, "", ""},
		{
			"another key",
			configMap(map[string]string{"policy.yml": "version: v1alpha1\n"}),
			nil,
			v1alpha1.ReasonPolicyInvalid,
			"ConfigMap home/redquake-policy has no key policy.yaml",
		},
		{
			"a type that does not exist",
			configMap(map[string]string{
				policy.Key: "version: v1alpha1\nrules:\n- {name: a, namespaces: {names: [b]}, forbid: {faults: [NodeLos]}}\n",
			}),
			nil,
			v1alpha1.ReasonPolicyInvalid,
			`rules[0].forbid.faults[0]: "NodeLos" is unknown`,
		},
		{"no right to read it", nil, denied, v1alpha1.ReasonPolicyInvalid, "may not read ConfigMap home/redquake-policy"},
		{"no answer", nil, errors.New("connection refused"), "", "connection refused"},
	} {
		under := fake.NewClientBuilder().WithScheme(apitest.Scheme(t))
		if tc.stored != nil {
			under = under.WithObjects(tc.stored)
		}
		r := &Reconciler{OperatorNamespace: "home", APIReader: under.WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
				options ...client.GetOption,
			) error {
				if tc.fails != nil {
					return tc.fails
				}
				return c.Get(ctx, key, o, options...)
			},
		}).Build()}
		found, err := r.rules().Live(t.Context())
		shown, other := problem.From(err)
		switch {
		case tc.phrase == "":
			if err != nil || found == nil {
				t.Errorf("%s: %v", tc.name, err)
			}
		case tc.reason == "":
			if other == nil || !strings.Contains(other.Error(), tc.phrase) {
				t.Errorf("%s: %v", tc.name, err)
			}
		case shown == nil || shown.Reason != tc.reason || shown.Lasting || !strings.Contains(shown.Message, tc.phrase):
			t.Errorf("%s: %+v, %v", tc.name, shown, other)
		}
	}
}

// Faults that wait share one copy, which is read again after some seconds, also where the clock was set back.
func TestRecentPolicy(t *testing.T) {
	reads := 0
	clock := testingclock.NewFakePassiveClock(time.Now())
	r := &Reconciler{
		OperatorNamespace: "home",
		Clock:             clock,
		APIReader: fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				reads++
				return errors.New("no answer")
			},
		}).Build(),
	}
	for _, tc := range []struct {
		passes time.Duration
		want   int
	}{{0, 1}, {rules.PolicyAge - 1, 1}, {1, 2}, {-time.Hour, 3}, {time.Second, 3}} {
		clock.SetTime(clock.Now().Add(tc.passes))
		if _, err := r.rules().Recent(t.Context()); err == nil || reads != tc.want {
			t.Errorf("after %s: %d reads, want %d; %v", tc.passes, reads, tc.want, err)
		}
	}
}

// A fault that switches off a machine is refused where no power hook is configured.
func TestNoPowerHook(t *testing.T) {
	r := &Reconciler{}
	s := &scope.Fault{Fault: &v1alpha1.RedisFault{Spec: v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{
		Type:     v1alpha1.FaultNodeLoss,
		NodeLoss: &v1alpha1.NodeLoss{Node: "node-b", Method: v1alpha1.LossPower},
	}}}}
	r.turns().ObservePolicy(t.Context(), s)
	if p := s.Seen.Problem; p == nil || !p.Lasting || p.Reason != v1alpha1.ReasonForbiddenByPolicy ||
		!strings.HasPrefix(p.Message, "spec.action.nodeLoss.method: ") || !strings.Contains(p.Message, "--power-hook-url") {
		t.Errorf("%+v", p)
	}
}

// A type that is switched off is refused before the policy is read.
func TestSwitchedOff(t *testing.T) {
	r := &Reconciler{Supported: []v1alpha1.FaultType{v1alpha1.FaultPodKill}}
	s := &scope.Fault{
		Fault: &v1alpha1.RedisFault{Spec: v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultNodeLoss}}},
	}
	r.turns().ObservePolicy(t.Context(), s)
	if p := s.Seen.Problem; p == nil || !p.Lasting || p.Reason != v1alpha1.ReasonForbiddenByPolicy ||
		!strings.Contains(p.Message, "NodeLoss is switched off in this installation, by the flag --faults") {
		t.Errorf("%+v", p)
	}
	s.Seen.Problem, s.Seen.Recorded = nil, true
	if r.turns().ObservePolicy(t.Context(), s); s.Seen.Problem != nil {
		t.Error("a fault that has begun is judged")
	}
}
