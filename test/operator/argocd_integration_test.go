//go:build integration && argocd

package operator

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers"
	"github.com/redquake/redquake/internal/testing/argocd"
	"github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// argo is a real Argo CD on a control plane of its own.
type argo struct {
	*operatortest.Place
	*argocd.Argo
}

func startArgo(t *testing.T) *argo {
	t.Helper()
	env, err := cluster.StartControlPlane()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Stop() })
	to, err := client.NewWithWatch(env.Config, client.Options{Scheme: controllers.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return &argo{operatortest.NewPlaceOn(t, env.Config, to), argocd.Start(t, env.Config, to)}
}

// A real Argo CD syncs an application with a PostSync hook: the sync waits for the run, succeeds if its verdict is
// Pass, and fails if an objective is missed. The sync of the next release runs the test again. The samples show no
// difference afterwards.
func TestRealArgoCD(t *testing.T) {
	a := startArgo(t)
	redis := operatortest.StartRedis(a.Place)
	a.collectGarbage()
	operatortest.StartKubelet(a.Place, nil)
	operatortest.StartOperator(a.Place, operatortest.Spy{})
	hookOf := func(name string, objectives *v1alpha1.Objectives) *v1alpha1.RedisLoadTest {
		test := operatortest.NewLoadTest(name, redis.Address(), operatortest.WithTolerance)
		test.Annotations = map[string]string{
			"argocd.argoproj.io/hook":               "PostSync",
			"argocd.argoproj.io/hook-delete-policy": "BeforeHookCreation",
		}
		test.Spec.Load.Duration = operatortest.Length(5 * time.Second)
		test.Spec.Objectives = objectives
		return test
	}
	a.Commit("passes", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "passes"}},
		hookOf("passes", &v1alpha1.Objectives{MaxErrorRate: new("50%")}))
	a.Commit("misses", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "misses"}},
		hookOf("misses", &v1alpha1.Objectives{MinThroughput: new("1000000")}))
	waited := false
	passes := a.NewAutomated("passes", a.Namespace)
	a.Argo.Create(passes)
	sync := a.AwaitSync(passes, argocd.Sync{}, func(s argocd.Sync) {
		waited = waited || s.Phase == "Running" &&
			strings.Contains(s.Message, "waiting for completion of hook redquake.dev/RedisLoadTest/passes")
	})
	if sync.Phase != "Succeeded" || !waited {
		t.Errorf("with a hook that passes the sync is %s: %s; it has waited: %v", sync.Phase, sync.Message, waited)
	}
	first := a.LoadTest("passes")
	if first.Status.Verdict != v1alpha1.VerdictPass {
		t.Errorf("the verdict of the hook is %s", first.Status.Verdict)
	}
	a.Commit("passes", &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "passes"},
		Data:       map[string]string{"release": "2"},
	}, hookOf("passes", &v1alpha1.Objectives{MaxErrorRate: new("50%")}))
	a.Refresh(passes)
	sync = a.MustSync(passes, sync)
	if second := a.LoadTest("passes"); second.UID == first.UID || second.Status.Verdict != v1alpha1.VerdictPass {
		t.Errorf("the sync of the next release: a new hook: %v, its verdict %s", second.UID != first.UID,
			second.Status.Verdict)
	}
	misses := a.NewAutomated("misses", a.Namespace)
	a.Argo.Create(misses)
	sync = a.AwaitSync(misses, argocd.Sync{}, func(argocd.Sync) {})
	if sync.Phase != "Failed" || !strings.Contains(fmt.Sprint(sync.All), "verdict Fail: ") {
		t.Errorf("with a hook that misses an objective the sync is %s: %v", sync.Phase, sync.All)
	}
	a.runActions()
	a.samplesDoNotDrift()
}

// A real Argo CD installs the chart, with rights in one namespace: nothing drifts afterwards, although Kubernetes writes
// the sum of the operator's roles into one of them; and other values are applied by the next sync.
func TestArgoCDInstallsTheChart(t *testing.T) {
	a := startArgo(t)
	a.startControllers("clusterrole-aggregation-controller")
	a.CommitFolder("chart", "../../charts/redquake")
	app := a.NewAutomated("chart", "redquake-system", "CreateNamespace=true")
	a.Set(app, map[string]any{
		"namespaces": []any{a.Namespace},
		"metrics":    map[string]any{"enabled": false},
		"dashboard":  map[string]any{"enabled": false},
	}, "spec", "source", "helm", "valuesObject")
	a.Argo.Create(app)
	sync := a.MustSync(app, argocd.Sync{})
	a.Until("Kubernetes has added up the roles", 2*time.Minute, func() bool {
		var sum rbacv1.ClusterRole
		err := a.Client.Get(t.Context(), client.ObjectKey{Name: "redquake-namespace-role"}, &sum)
		return err == nil && len(sum.Rules) > 20
	}, func() string { return "" })
	a.IsSynced(app)

	a.Patch(app, `{"spec":{"source":{"helm":{"valuesObject":{"logLevel":"debug"}}}}}`)
	a.MustSync(app, sync)
	a.IsSynced(app)
	var manager appsv1.Deployment
	a.MustChange(a.Client.Get(t.Context(), client.ObjectKey{
		Namespace: "redquake-system",
		Name:      "redquake-controller-manager",
	}, &manager))
	if args := manager.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--zap-log-level=debug") {
		t.Errorf("after the sync of other values the manager has the flags %q", args)
	}
}

// collectGarbage starts the garbage collector of Kubernetes: Argo CD deletes the hook of the last sync in the
// foreground, which it completes. It would also delete the pod of Redis, whose StatefulSet does not exist.
func (a *argo) collectGarbage() {
	a.T.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: operatortest.RedisName}}
	a.MustChange(a.Client.Patch(a.T.Context(), pod,
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`))))
	a.startControllers("garbage-collector-controller")
}

// startControllers starts controllers of Kubernetes by their names.
func (a *argo) startControllers(names string) {
	a.T.Helper()
	a.StartProcess("kube-controller-manager",
		exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-controller-manager"),
			"--kubeconfig", a.Kubeconfig, "--controllers", names, "--leader-elect=false",
			"--secure-port", "0"))
}

// runActions runs the actions by Argo CD's command line on objects as the operator has left them.
func (a *argo) runActions() {
	a.T.Helper()
	for _, c := range []struct{ object, words, want string }{
		{"RedisLoadTest/testdata/passed.yaml", "health", "STATUS: Healthy"},
		{"RedisLoadTest/testdata/missed.yaml", "health", "STATUS: Degraded"},
		{"RedisFault/testdata/active.yaml", "health", "STATUS: Progressing"},
		{"RedisExperimentSchedule/testdata/suspended.yaml", "health", "STATUS: Suspended"},
		{"RedisLoadTest/testdata/running.yaml", "list-actions", "abort"},
		{"RedisLoadTest/testdata/running.yaml", "run-action abort", "abort: true"},
		{"RedisExperiment/testdata/suspended.yaml", "run-action resume", "suspend: false"},
		{"RedisFault/testdata/passed.yaml", "run-action rerun", "generateName: kill-primary-"},
	} {
		verb, action, _ := strings.Cut(c.words, " ")
		words := []string{
			"admin", "settings", "resource-overrides", verb,
			filepath.Join("../../config/argocd/resource_customizations/redquake.dev", c.object),
		}
		if action != "" {
			words = append(words, action)
		}
		command := a.Command("argocd", append(words, "--argocd-cm-path", "../../config/argocd/argocd-cm.yaml")...)
		text, err := command.CombinedOutput()
		if err != nil || !strings.Contains(string(text), c.want) {
			a.T.Errorf("argocd %s %s: %v, want %q:\n%s", c.words, c.object, err, c.want, text)
		}
		a.T.Logf("argocd admin settings resource-overrides %s %s: %s", c.words, c.object, c.want)
	}
}

// samplesDoNotDrift applies the samples by Argo CD, suspended, and reports which are out of sync afterwards.
func (a *argo) samplesDoNotDrift() {
	a.T.Helper()
	paths, err := filepath.Glob("../../config/samples/*.yaml")
	a.MustChange(err)
	var objects []client.Object
	for _, path := range paths {
		text, err := os.ReadFile(path)
		a.MustChange(err)
		for document := range strings.SplitSeq("\n"+string(text), "\n---\n") {
			if !strings.Contains(document, "\napiVersion: redquake.dev/") {
				continue
			}
			o := &unstructured.Unstructured{}
			a.MustChange(yaml.Unmarshal([]byte(document), &o.Object))
			a.MustChange(unstructured.SetNestedField(o.Object, true, "spec", "suspend"))
			objects = append(objects, o)
		}
	}
	a.Commit("samples", objects...)
	app := a.NewApplication("samples", a.Namespace)
	app.SetAnnotations(map[string]string{"argocd.argoproj.io/compare-options": "ServerSideDiff=true"})
	a.Set(app, map[string]any{"sync": map[string]any{"syncOptions": []any{"ServerSideApply=true"}}}, "operation")
	a.Argo.Create(app)
	a.IsSynced(app)
	a.T.Logf("%d samples are synced", len(objects))
}
