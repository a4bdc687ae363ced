//go:build e2e

package e2e_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/prometheustest"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	managerMetrics(t)
}

// managerMetrics has a Prometheus with the rights of config/components/prometheus scrape the manager: without them it
// gets nothing, and with them each query of the dashboards has a result while a fault is active.
func managerMetrics(t *testing.T) {
	// for the manager's NetworkPolicy
	n := makeNamespace(t, metav1.ObjectMeta{
		GenerateName: "e2e-metrics-",
		Labels:       map[string]string{"redquake.dev/metrics": "enabled"},
	})
	n.applyRedis(nil)
	objects, err := readObjects(filepath.Join("testdata", "prometheus-manager.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		n.create(object)
	}
	verified := n.smallLoad("verified", 35*time.Second)
	verified.Spec.Load.UntilFaultsSettle = span(2 * patience)
	verified.Spec.Verify = &v1alpha1.LoadVerify{AcknowledgedWrites: true, Share: "25%"}
	n.create(verified)
	n.create(n.smallLoad("run", 2*time.Hour))
	n.create(faultOn("verified", "kill", v1alpha1.FaultPodKill, func(s *v1alpha1.RedisFaultSpec) {
		s.Trigger = v1alpha1.FaultTrigger{After: span(12 * time.Second)}
		s.RecoveryDeadline = *span(patience) // without a recovery there is no annotation of it
	}))
	e := n.planted(1)
	e.Spec.Matrix = e.Spec.Matrix[:1] // its settings would wait for the faults
	n.create(e)
	n.create(&v1alpha1.RedisExperimentSchedule{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly"},
		Spec: v1alpha1.RedisExperimentScheduleSpec{
			Schedule: "0 3 * * *", Suspend: true, Template: v1alpha1.ExperimentTemplate{Spec: *e.Spec.DeepCopy()},
		},
	})

	pod := n.podReady("prometheus", deployTime)
	server := &prometheustest.Server{URL: "http://" + pod.Status.PodIP + ":9090"}
	server.Has(t, "a scrape that is refused", `up == 0`)
	server.HasNot(t, "all that was scraped without the right to", `present_over_time({__name__=~"redquake_.*"}[1h])`)
	n.grantScrape()
	server.Has(t, "a scrape with the right to", `redquake_loadtest_info{namespace="`+n.name+`"}`)

	n.waitFault("kill", 3*patience, v1alpha1.ReasonSucceeded, v1alpha1.ReasonInconclusive)
	n.experimentEnds(e, 3*patience)
	n.create(faultOn("run", "active", v1alpha1.FaultConfig, func(s *v1alpha1.RedisFaultSpec) {
		s.Action.Config, s.Duration = &v1alpha1.Config{
			Parameters: map[string]v1alpha1.ParameterValue{"hz": "50"},
		}, span(time.Hour)
	}))
	n.waitFault("active", patience, v1alpha1.ReasonActive)
	server.Has(t, "the active fault", `redquake_fault_outage_seconds{namespace="`+n.name+`",fault="active"}`)
	asked := 0
	for _, d := range prometheustest.Dashboards(t, filepath.Join("..", "..")) {
		for _, q := range d.Queries() {
			server.Has(t, q.From, strings.ReplaceAll(q.With("1m", "1h"), `namespace=~".*"`, `namespace="`+n.name+`"`))
			asked++
		}
	}
	for _, q := range prometheustest.ReadRules(t, filepath.Join("..", "..")).Queries() {
		await.Until(t, q.From+" can be evaluated", func() error {
			_, err := server.Ask(q.Expr)
			return err
		})
		asked++
	}
	t.Logf("%d queries", asked)
}

// grantScrape binds the roles of config/components/prometheus to the Prometheus of the namespace, under names of its
// own.
func (n *namespace) grantScrape() {
	n.Helper()
	objects, err := readObjects(filepath.Join("..", "..", "config", "components", "prometheus", "rbac.yaml"))
	if err != nil {
		n.Fatal(err)
	}
	for _, object := range objects {
		object.SetName(n.name + "-" + object.GetName())
		if object.GetNamespace() != "" {
			object.SetNamespace("redquake-system")
		}
		if role, bound, _ := unstructured.NestedString(object.Object, "roleRef", "name"); bound {
			name := n.name + "-" + role
			if role == "metrics-reader" {
				name = "redquake-" + role
			}
			_ = unstructured.SetNestedField(object.Object, name, "roleRef", "name")
			_ = unstructured.SetNestedSlice(object.Object,
				[]any{map[string]any{"kind": "ServiceAccount", "name": "prometheus", "namespace": n.name}}, "subjects")
		}
		if err := cluster.Create(n.Context(), object); err != nil {
			n.Fatal(err)
		}
		n.Cleanup(func() { _ = client.IgnoreNotFound(cluster.Delete(context.Background(), object)) })
	}
	for _, what := range []authorizationv1.ResourceAttributes{
		{Resource: "services"},
		{Resource: "endpoints"},
		{Resource: "pods"},
		{Group: "discovery.k8s.io", Resource: "endpointslices"},
	} {
		what.Namespace, what.Verb = "redquake-system", "watch"
		review := &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               "system:serviceaccount:" + n.name + ":prometheus",
				ResourceAttributes: &what,
			},
		}
		got, err := cluster.clientset.AuthorizationV1().SubjectAccessReviews().Create(n.Context(), review,
			metav1.CreateOptions{})
		if err != nil || !got.Status.Allowed {
			n.Errorf("Prometheus may not watch %s: %v", what.Resource, err)
		}
	}
}
