//go:build integration

package children

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/testing/cluster"
)

// warned collects the API server's warnings: restricted Pod Security warns about a Job's template, and refuses only its
// pods.
type warned struct{ texts []string }

func (w *warned) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

// A real API server accepts every child unchanged, in a namespace with the restricted Pod Security Standard.
func TestAdmission(t *testing.T) {
	config, stop, err := cluster.ControlPlane()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	var warnings warned
	c := strictClient(t, config, &warnings)
	ctx := context.Background()
	create := func(object client.Object) {
		t.Helper()
		if err := c.Create(ctx, object); err != nil {
			t.Errorf("%T is refused: %v", object, err)
		}
	}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{
		"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted",
	}}})
	create(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000})
	create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "default"}})

	test := loadTest(t, fullest)
	test.UID = ""
	test.Name = strings.Repeat("a", 52)
	test.Spec.Pods.Count, test.Spec.Load.Users = 1000, new(int32(1000)) // the maximum length of a host name
	create(test)
	plan, err := Plan(test, addresses)
	if err != nil {
		t.Fatal(err)
	}
	configMap, err := PlanConfigMap(test, plan)
	if err != nil {
		t.Fatal(err)
	}
	create(configMap)
	create(AgentSecret(test, agent.Credentials{CertificatePEM: []byte("c"), PrivateKeyPEM: []byte("k"), Token: "t"}))
	create(ResultsConfigMap(test, []byte{0xff}))
	job := LoadJob(test, "checkout-cache-plan", "ghcr.io/redquake/redquake:v1", FixedUserIDs)
	create(job)
	// The pod that the Job controller, which is missing here, would create.
	create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pod"}, Spec: job.Spec.Template.Spec})

	fault := &v1alpha1.RedisFault{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: strings.Repeat("f", 46)},
		Spec:       v1alpha1.RedisFaultSpec{Target: &test.Spec.Target, Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}},
	}
	create(fault)
	probe := ProbeLoadTest(fault)
	create(probe)
	create(LoadJob(probe, "checkout-cache-plan", "ghcr.io/redquake/redquake:v1", FixedUserIDs))
	if len(warnings.texts) > 0 {
		t.Errorf("the API server warns: %q", warnings.texts)
	}

	t.Run("OpenShift", func(t *testing.T) { underRestrictedV2(t, c, test) })

	// The reason why Plan refuses a name with a dot.
	dotted := loadTest(t, smallest)
	dotted.Name, dotted.UID = "a.b", test.UID
	if err := c.Create(ctx, LoadJob(dotted, "checkout-cache-plan", "x", FixedUserIDs)); err == nil {
		t.Error("the API server accepts a Job with a dot in its name, which Plan refuses")
	}
}

// strictClient refuses unknown fields and keeps warnings.
func strictClient(t *testing.T, config *rest.Config, warnings *warned) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	config.WarningHandler = warnings
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return client.WithFieldValidation(c, metav1.FieldValidationStrict)
}
