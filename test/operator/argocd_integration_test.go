//go:build integration && argocd

package operator

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net"
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
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/installed"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// argo is a real Argo CD: an application controller and a repo server, with Redis and a Git repository, on a control
// plane of its own.
type argo struct {
	*operatortest.Place
	program    string
	kubeconfig string
	repository string
	folder     string // with the logs
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
	a.commit("passes", &corev1.ConfigMap{TypeMeta: configMapType, ObjectMeta: metav1.ObjectMeta{Name: "passes"}},
		hookOf("passes", &v1alpha1.Objectives{MaxErrorRate: new("50%")}))
	a.commit("misses", &corev1.ConfigMap{TypeMeta: configMapType, ObjectMeta: metav1.ObjectMeta{Name: "misses"}},
		hookOf("misses", &v1alpha1.Objectives{MinThroughput: new("1000000")}))
	waited := false
	operation := a.sync("passes", func(phase, message string) {
		waited = waited || phase == "Running" &&
			strings.Contains(message, "waiting for completion of hook redquake.dev/RedisLoadTest/passes")
	})
	if phase := textAt(operation, "phase"); phase != "Succeeded" || !waited {
		t.Errorf("with a hook that passes the sync is %s: %s; it has waited: %v", phase, textAt(operation, "message"), waited)
	}
	first := a.LoadTest("passes")
	if first.Status.Verdict != v1alpha1.VerdictPass {
		t.Errorf("the verdict of the hook is %s", first.Status.Verdict)
	}
	a.commit("passes", &corev1.ConfigMap{
		TypeMeta:   configMapType,
		ObjectMeta: metav1.ObjectMeta{Name: "passes"},
		Data:       map[string]string{"release": "2"},
	},
		hookOf("passes", &v1alpha1.Objectives{MaxErrorRate: new("50%")}))
	operation = a.syncAgain("passes", operation)
	if second := a.LoadTest("passes"); textAt(operation, "phase") != "Succeeded" || second.UID == first.UID ||
		second.Status.Verdict != v1alpha1.VerdictPass {
		t.Errorf("the sync of the next release is %s: %s; a new hook: %v, its verdict %s", textAt(operation, "phase"),
			textAt(operation, "message"), second.UID != first.UID, second.Status.Verdict)
	}
	operation = a.sync("misses", func(string, string) {})
	if phase := textAt(operation, "phase"); phase != "Failed" ||
		!strings.Contains(fmt.Sprint(operation), "verdict Fail: ") {
		t.Errorf("with a hook that misses an objective the sync is %s: %v", phase, operation)
	}
	a.runActions()
	a.samplesDoNotDrift()
}

// A real Argo CD installs the chart, with rights in one namespace: nothing drifts afterwards, although Kubernetes writes
// the sum of the operator's roles into one of them; and other values are applied by the next sync.
func TestArgoCDInstallsTheChart(t *testing.T) {
	a := startArgo(t)
	a.startControllers("clusterrole-aggregation-controller")
	a.MustChange(os.CopyFS(filepath.Join(a.repository, "chart"), os.DirFS("../../charts/redquake")))
	a.commitAll("the chart")
	app := a.newApplication("chart", true)
	a.setAll(app, map[string]any{
		"namespaces": []any{a.Namespace},
		"metrics":    map[string]any{"enabled": false},
		"dashboard":  map[string]any{"enabled": false},
	}, "spec", "source", "helm", "valuesObject")
	a.setAll(app, "redquake-system", "spec", "destination", "namespace")
	a.setAll(app, []any{"ServerSideApply=true", "CreateNamespace=true"}, "spec", "syncPolicy", "syncOptions")
	a.Create(app)
	operation := a.awaitSync(app, "", func(string, string) {})
	if phase := textAt(operation, "phase"); phase != "Succeeded" {
		t.Fatalf("the sync is %s: %s", phase, textAt(operation, "message"))
	}
	a.Until("Kubernetes has added up the roles", 2*time.Minute, func() bool {
		var sum rbacv1.ClusterRole
		err := a.Client.Get(t.Context(), client.ObjectKey{Name: "redquake-namespace-role"}, &sum)
		return err == nil && len(sum.Rules) > 20
	}, func() string { return "" })
	a.isSynced(app)

	a.MustChange(a.Client.Patch(t.Context(), app, client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"source":{"helm":{"valuesObject":{"logLevel":"debug"}}}}}`))))
	a.awaitSync(app, textAt(operation, "startedAt"), func(string, string) {})
	a.isSynced(app)
	var manager appsv1.Deployment
	a.MustChange(a.Client.Get(t.Context(), client.ObjectKey{
		Namespace: "redquake-system",
		Name:      "redquake-controller-manager",
	}, &manager))
	if args := manager.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--zap-log-level=debug") {
		t.Errorf("after the sync of other values the manager has the flags %q", args)
	}
}

var configMapType = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}

// startArgo starts a control plane and Argo CD.
func startArgo(t *testing.T) *argo {
	t.Helper()
	program, crds := os.Getenv("REDQUAKE_ARGOCD"), os.Getenv("REDQUAKE_ARGOCD_CRDS")
	if program == "" || crds == "" {
		t.Fatal("REDQUAKE_ARGOCD and REDQUAKE_ARGOCD_CRDS must be set: run make argocd")
	}
	env, err := cluster.StartControlPlane(filepath.Join(crds, "application-crd.yaml"),
		filepath.Join(crds, "appproject-crd.yaml"), filepath.Join(crds, "applicationset-crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Stop() })
	to, err := client.NewWithWatch(env.Config, client.Options{Scheme: controllers.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	a := &argo{Place: operatortest.NewPlaceOn(t, env.Config, to), program: program, folder: t.TempDir()}
	a.writeKubeconfig()
	a.configure()
	a.repository = filepath.Join(a.folder, "repository")
	a.git("init", "--quiet", "--initial-branch=main", a.repository)
	store, repo := a.freeAddress(), a.freeAddress()
	host, port, _ := net.SplitHostPort(store)
	a.startProcess("redis", exec.Command(redistest.ServerProgram(t), "--bind", host, "--port", port, "--save", "", "--dir",
		a.folder))
	host, port, _ = net.SplitHostPort(repo)
	a.startArgoProcess("argocd-repo-server", "--disable-tls", "--address", host, "--port", port, "--metrics-port",
		a.freePort(), "--redis", store)
	a.startArgoProcess("argocd-application-controller", "--kubeconfig", a.kubeconfig, "--namespace", "argocd",
		"--repo-server", repo, "--repo-server-plaintext",
		"--metrics-port", a.freePort(), "--redis", store, "--app-resync", "5")
	a.awaitProjects()
	return a
}

// awaitProjects waits until Argo CD's controller knows its project: a sync that it begins before fails, and is not tried
// again.
func (a *argo) awaitProjects() {
	a.T.Helper()
	a.commit("first", &corev1.ConfigMap{TypeMeta: configMapType, ObjectMeta: metav1.ObjectMeta{Name: "first"}})
	app := a.application("first", false)
	a.Until("Argo CD compares the first application", 4*time.Minute, func() bool {
		a.MustChange(a.Client.Get(context.Background(), client.ObjectKeyFromObject(app), app))
		status, _, _ := unstructured.NestedString(app.Object, "status", "sync", "status")
		return status == "OutOfSync"
	}, func() string { return fmt.Sprint(app.Object["status"]) })
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
	a.startProcess("kube-controller-manager",
		exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-controller-manager"),
			"--kubeconfig", a.kubeconfig, "--controllers", names, "--leader-elect=false",
			"--secure-port", "0"))
}

// writeKubeconfig writes how Argo CD reaches the API server.
func (a *argo) writeKubeconfig() {
	a.T.Helper()
	a.kubeconfig = filepath.Join(a.folder, "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: a.Config.Host, CertificateAuthorityData: a.Config.CAData}
	config.AuthInfos["test"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: a.Config.CertData,
		ClientKeyData:         a.Config.KeyData,
		Token:                 a.Config.BearerToken,
	}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test", Namespace: "argocd"}
	config.CurrentContext = "test"
	a.MustChange(clientcmd.WriteToFile(*config, a.kubeconfig))
}

// configure creates Argo CD's settings: those of config/argocd, as users apply them.
func (a *argo) configure() {
	a.T.Helper()
	a.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "argocd"}})
	text, err := os.ReadFile("../../config/argocd/argocd-cm.yaml")
	a.MustChange(err)
	settings := &corev1.ConfigMap{}
	a.MustChange(yaml.UnmarshalStrict(text, settings))
	a.Create(inArgo(settings))
	part := map[string]string{"app.kubernetes.io/part-of": "argocd"}
	for _, name := range []string{
		"argocd-rbac-cm", "argocd-cmd-params-cm", "argocd-ssh-known-hosts-cm",
		"argocd-tls-certs-cm", "argocd-gpg-keys-cm",
	} {
		a.Create(inArgo(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: part}}))
	}
	a.Create(inArgo(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "argocd-secret", Labels: part},
		StringData: map[string]string{
			"server.secretkey": base64.StdEncoding.EncodeToString([]byte("of a test")),
		},
	}))
	project := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": map[string]any{"name": "default"},
		"spec": map[string]any{
			"sourceRepos": []any{"*"}, "destinations": []any{map[string]any{"server": "*", "namespace": "*"}},
			"clusterResourceWhitelist": []any{map[string]any{"group": "*", "kind": "*"}},
		},
	}}
	a.Create(inArgo(project))
}

func inArgo[T client.Object](object T) T {
	object.SetNamespace("argocd")
	return object
}

// commit stores manifests in a folder of the repository.
func (a *argo) commit(folder string, objects ...client.Object) {
	a.T.Helper()
	var all bytes.Buffer
	for _, object := range objects {
		if object.GetObjectKind().GroupVersionKind().Empty() {
			kinds, _, err := a.Client.Scheme().ObjectKinds(object)
			a.MustChange(err)
			object.GetObjectKind().SetGroupVersionKind(kinds[0])
		}
		text, err := yaml.Marshal(object)
		a.MustChange(err)
		all.WriteString("---\n")
		all.Write(text)
	}
	a.commitText(folder, all.Bytes())
}

func (a *argo) commitText(folder string, text []byte) {
	a.T.Helper()
	a.MustChange(os.MkdirAll(filepath.Join(a.repository, folder), 0o755))
	a.MustChange(os.WriteFile(filepath.Join(a.repository, folder, "all.yaml"), text, 0o600))
	a.commitAll(folder)
}

func (a *argo) commitAll(message string) {
	a.T.Helper()
	a.git("-C", a.repository, "add", ".")
	a.git("-C", a.repository, "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "-m",
		message)
}

func (a *argo) git(words ...string) {
	a.T.Helper()
	if text, err := exec.Command("git", words...).CombinedOutput(); err != nil {
		a.T.Fatalf("git %v: %v: %s", words, err, text)
	}
}

// application creates an Application of a folder of the repository.
func (a *argo) application(name string, automated bool) *unstructured.Unstructured {
	a.T.Helper()
	app := a.newApplication(name, automated)
	a.Create(app)
	return app
}

func (a *argo) newApplication(name string, automated bool) *unstructured.Unstructured {
	spec := map[string]any{
		"project":     "default",
		"source":      map[string]any{"repoURL": "file://" + a.repository, "path": name, "targetRevision": "main"},
		"destination": map[string]any{"server": "https://kubernetes.default.svc", "namespace": a.Namespace},
	}
	if automated {
		spec["syncPolicy"] = map[string]any{
			// the default is 5, each of which runs the test again
			"automated":   map[string]any{},
			"syncOptions": []any{"ServerSideApply=true"},
			"retry":       map[string]any{"limit": int64(0)},
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1",
		"kind":       "Application",
		"metadata":   map[string]any{"name": name, "namespace": "argocd"},
		"spec":       spec,
	}}
}

func (a *argo) setAll(o *unstructured.Unstructured, value any, field ...string) {
	a.T.Helper()
	a.MustChange(unstructured.SetNestedField(o.Object, value, field...))
}

// sync creates an Application, and returns the state of its first sync at its end; see gets each state on the way.
func (a *argo) sync(name string, see func(phase, message string)) map[string]any {
	a.T.Helper()
	return a.awaitSync(a.application(name, true), "", see)
}

// syncAgain lets Argo CD find a new commit, and returns the state of the sync after an earlier one.
func (a *argo) syncAgain(name string, earlier map[string]any) map[string]any {
	a.T.Helper()
	app := &unstructured.Unstructured{}
	app.SetAPIVersion("argoproj.io/v1alpha1")
	app.SetKind("Application")
	app.SetName(name)
	patch := client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"hard"}}}`))
	a.MustChange(a.Client.Patch(context.Background(), inArgo(app), patch))
	return a.awaitSync(app, textAt(earlier, "startedAt"), func(string, string) {})
}

// awaitSync waits for the end of a sync that did not start at an earlier instant.
func (a *argo) awaitSync(
	app *unstructured.Unstructured, earlier string, see func(phase, message string),
) map[string]any {
	a.T.Helper()
	last := ""
	var operation map[string]any
	await.Within(a.T, 4*time.Minute, "the sync of "+app.GetName()+" ends", func() error {
		a.MustChange(a.Client.Get(context.Background(), client.ObjectKeyFromObject(app), app))
		operation, _, _ = unstructured.NestedMap(app.Object, "status", "operationState")
		if textAt(operation, "startedAt") == earlier {
			return fmt.Errorf("another has not started since %s", earlier)
		}
		phase, message := textAt(operation, "phase"), textAt(operation, "message")
		if now := phase + ": " + message; now != last {
			a.T.Logf("%s: sync %s", app.GetName(), now)
			last = now
		}
		see(phase, message)
		return await.That(slices.Contains([]string{"Succeeded", "Failed", "Error"}, phase), "%s", last)
	})
	return operation
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
		command := exec.Command(a.program, append(words, "--argocd-cm-path", "../../config/argocd/argocd-cm.yaml")...)
		command.Env = append(os.Environ(), "ARGOCD_BINARY_NAME=argocd", "KUBECONFIG="+a.kubeconfig)
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
	var all bytes.Buffer
	applied := 0
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
			changed, err := yaml.Marshal(o.Object)
			a.MustChange(err)
			fmt.Fprintf(&all, "---\n%s", changed)
			applied++
		}
	}
	a.commitText("samples", all.Bytes())
	app := a.application("samples", false)
	a.MustChange(unstructured.SetNestedField(app.Object, "true", "metadata", "annotations", "argocd.argoproj.io/refresh"))
	a.MustChange(unstructured.SetNestedMap(app.Object,
		map[string]any{"sync": map[string]any{"syncOptions": []any{"ServerSideApply=true"}}}, "operation"))
	a.MustChange(unstructured.SetNestedField(app.Object, "ServerSideDiff=true", "metadata", "annotations",
		"argocd.argoproj.io/compare-options"))
	a.MustChange(a.Client.Update(context.Background(), app))
	a.isSynced(app)
	a.T.Logf("%d samples are synced", applied)
}

// isSynced waits until Argo CD, which looks again, sees no difference between an application and the cluster.
func (a *argo) isSynced(app *unstructured.Unstructured) {
	a.T.Helper()
	since := time.Now().UTC().Truncate(time.Second).Format(time.RFC3339)
	a.MustChange(a.Client.Patch(context.Background(), app, client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"hard"}}}`))))
	status := ""
	a.Until(app.GetName()+" is synced", 3*time.Minute, func() bool {
		a.MustChange(a.Client.Get(context.Background(), client.ObjectKeyFromObject(app), app))
		status, _, _ = unstructured.NestedString(app.Object, "status", "sync", "status")
		looked, _, _ := unstructured.NestedString(app.Object, "status", "reconciledAt")
		return status == "Synced" && looked > since
	}, func() string {
		resources, _, _ := unstructured.NestedSlice(app.Object, "status", "resources")
		return fmt.Sprintf("%s: %v", status, slices.DeleteFunc(resources, func(r any) bool {
			return textAt(r.(map[string]any), "status") == "Synced"
		}))
	})
}

func textAt(of map[string]any, key string) string {
	text, _ := of[key].(string)
	return text
}

func (a *argo) startArgoProcess(role string, flags ...string) {
	a.T.Helper()
	command := exec.Command(a.program, append(flags, "--logformat", "text")...)
	command.Env = append(os.Environ(), "ARGOCD_BINARY_NAME="+role, "ARGOCD_GPG_ENABLED=false", "KUBECONFIG="+a.kubeconfig,
		"HOME="+a.folder, "ARGOCD_FAKE_IN_CLUSTER=true",
		"PATH="+filepath.Dir(installed.Program(a.T, "helm3"))+":"+os.Getenv("PATH")) // which it calls as helm
	a.startProcess(role, command)
}

// StartProcess runs a program until the test ends. Its log is shown if the test fails.
func (a *argo) startProcess(name string, command *exec.Cmd) {
	a.T.Helper()
	log, err := os.Create(filepath.Join(a.folder, name+".log"))
	a.MustChange(err)
	command.Stdout, command.Stderr = log, log
	a.MustChange(command.Start())
	a.T.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && a.T.Failed() {
			a.T.Logf("%s:\n%s", name, text[max(0, len(text)-6000):])
		}
	})
}

// freeAddress is an address that nobody listens on.
func (a *argo) freeAddress() string {
	a.T.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	a.MustChange(err)
	defer listener.Close()
	return listener.Addr().String()
}

func (a *argo) freePort() string {
	_, port, _ := net.SplitHostPort(a.freeAddress())
	return port
}
