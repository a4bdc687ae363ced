//go:build e2e

package e2e_test

import (
	"context"
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/argocd"
	testcluster "github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/installed"
)

// otherImage is the same image by another name, which `make e2e-installation` loads as well.
const otherImage = "mirror.example/redquake:other"

// way is a way to install the operator, to change the installation, to go back to the one before, and to remove it.
type way struct {
	install, change, back, remove func(*namespace)
	image                         string // of the load pods
	keeps                         bool   // the objects and their kinds
}

// TestInstallations installs the operator in every documented way, changes the installation and goes back while a load
// runs and a lasting fault acts, and removes it: Redis is as before, and nothing is left but what users keep. `make
// e2e-installation` calls it on a cluster without the operator.
func TestInstallations(t *testing.T) {
	ways := map[string]func(*namespace) way{
		"helm 3, all namespaces": byHelm("helm3"),
		"helm 4, all namespaces": byHelm("helm"),
		"helm 4, everything": byHelm("helm", "--set", "replicas=2,grafana.enabled=true,faults.NodeLoss=true",
			"--set", "faults.VolumeAttachDelay=true,networkPolicy.enabled=true", "--set", "policy.version=v1alpha1,policy.maxFaults=3"),
		"helm 4, two namespaces": func(n *namespace) way {
			values := fmt.Sprintf("namespaces={%s,%s}", n.name, newNamespace(n.T, "second").name)
			return byHelm("helm", "--set", values, "--set", "metrics.enabled=false,dashboard.enabled=false")(n)
		},
		"kubectl apply -f install.yaml": byFile,
		"kustomize, another image":      byOverlay,
		"Argo CD":                       byArgoCD,
	}
	for name, with := range ways {
		t.Run(name, func(t *testing.T) {
			n := newNamespace(t, "install")
			w := with(n)
			before := n.installedAndBroken(w)
			injected := n.fault("lasting").Status.InjectedAt
			if got := n.loadPods("base")[0].Spec.Containers[0].Image; got != w.image {
				t.Errorf("the load pods have the image %s, want %s", got, w.image)
			}
			for _, step := range []struct {
				name string
				do   func(*namespace)
			}{{"change", w.change}, {"go back", w.back}} {
				n.step(step.name, step.do)
				n.goesOn(step.name)
			}
			if f := n.fault("lasting"); !f.Status.InjectedAt.Equal(injected) {
				t.Errorf("the fault was injected again, at %s instead of %s", f.Status.InjectedAt, injected)
			}
			n.step("remove", w.remove)
			n.waitForState("redis", before)
			if w.keeps {
				n.isKept()
			}
			n.nothingIsLeft(w.keeps)
		})
	}
}

// installedAndBroken installs the operator, and returns the state of a Redis before a load and a lasting fault on it.
func (n *namespace) installedAndBroken(w way) map[string]string {
	n.Helper()
	n.step("install", w.install)
	n.Cleanup(func() {
		if n.Failed() {
			n.removeByForce()
		}
	})
	n.applyRedis(nil)
	before, err := n.stateOf("redis")
	if err != nil {
		n.Fatal(err)
	}
	n.createByUser(n.smallLoad("base", 40*time.Minute))
	n.createByUser(n.lastingFault())
	n.waitFault("lasting", 2*patience, v1alpha1.ReasonActive)
	return before
}

// step does something, and logs how long it took.
func (n *namespace) step(name string, do func(*namespace)) {
	n.Helper()
	began := time.Now()
	do(n)
	n.Logf("%s: %s", name, time.Since(began).Round(100*time.Millisecond))
}

// createByUser creates an object as soon as the API server serves its kind and the admission policies let it.
func (n *namespace) createByUser(object client.Object) {
	n.Helper()
	object.SetNamespace(n.name)
	n.eventually(patience, "the API server takes "+object.GetName(), func() (bool, string) {
		err := cluster.Create(n.Context(), object)
		return err == nil, fmt.Sprint(err)
	})
}

// goesOn: the operator that runs now knows of the fault, which still acts, and the load makes progress under it.
func (n *namespace) goesOn(after string) {
	n.Helper()
	hz, err := n.redis().ConfigGet(n.Context(), "hz").Result()
	if err != nil || hz["hz"] != "50" {
		n.Errorf("after %s: hz is %v, %v", after, hz, err)
	}
	sent := func() int64 {
		if s := n.loadTest("base").Status.Summary; s != nil {
			return s.Requests
		}
		return 0
	}
	since := sent()
	n.eventually(patience, "the operator sees the load go on", func() (bool, string) {
		now := sent()
		return now > since+1000, fmt.Sprintf("%d requests, before %d", now, since)
	})
	for _, c := range n.fault("lasting").Status.Conditions {
		if c.Type == v1alpha1.ConditionComplete && (c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonActive) {
			n.Errorf("after %s: the fault is %s: %s", after, c.Reason, c.Message)
		}
	}
}

// isKept: what was measured is there after the operator is gone, as that of runs that were ended.
func (n *namespace) isKept() {
	n.Helper()
	n.waitLoadTest("base", patience, v1alpha1.ReasonAborted)
	n.waitFault("lasting", patience, v1alpha1.ReasonAborted)
	test, fault := n.loadTest("base"), n.fault("lasting")
	if test.Status.Results == nil || fault.Status.RevertedAt == nil || len(fault.Finalizers) > 0 {
		n.Errorf("results %v, reverted at %v, finalizers %v", test.Status.Results, fault.Status.RevertedAt, fault.Finalizers)
	}
}

// nothingIsLeft: no object of an installation is there, except for the kinds where users keep their objects.
func (n *namespace) nothingIsLeft(kinds bool) {
	n.Helper()
	n.eventually(patience, "nothing of the operator is left", func() (bool, string) {
		left, err := ofInstallation(n.Context())
		if err != nil {
			return false, err.Error()
		}
		left = slices.DeleteFunc(left, func(name string) bool {
			return kinds && strings.HasPrefix(name, "CustomResourceDefinition ")
		})
		return len(left) == 0, strings.Join(left, ", ")
	})
}

// ofInstallation are all objects of all kinds and namespaces that an installation has labelled, and the records of helm.
func ofInstallation(ctx context.Context) (names []string, err error) {
	lists, err := discovery.ServerPreferredResources(cluster.clientset.Discovery())
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || resource.Kind == "Event" {
				continue
			}
			found := &unstructured.UnstructuredList{}
			found.SetAPIVersion(list.GroupVersion)
			found.SetKind(resource.Kind + "List")
			err := cluster.List(ctx, found, client.HasLabels{"app.kubernetes.io/name"})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue
			} else if err != nil {
				return nil, fmt.Errorf("list %s: %w", resource.Name, err)
			}
			for i := range found.Items {
				o := &found.Items[i]
				labels := o.GetLabels()
				if labels["app.kubernetes.io/name"] == "redquake" && labels[v1alpha1.LabelLoadTest] == "" {
					names = append(names, strings.TrimSpace(o.GetKind()+" "+o.GetName()+" "+o.GetNamespace()))
				}
			}
		}
	}
	var records corev1.SecretList
	if err := cluster.List(ctx, &records, client.InNamespace(operatorNamespace), client.MatchingLabels{"owner": "helm"}); err != nil {
		return nil, err
	}
	for _, r := range records.Items {
		names = append(names, "Secret "+r.Name)
	}
	return names, nil
}

// byHelm installs the chart. The installation is changed by an upgrade that replaces the operator's pod.
func byHelm(program string, values ...string) func(*namespace) way {
	return func(n *namespace) way {
		chart := n.path("charts", "redquake")
		home := n.TempDir()
		helm := func(arguments ...string) func(*namespace) {
			return func(n *namespace) {
				n.Helper()
				n.command(append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home),
					installed.Program(n.T, program), append(arguments, "--namespace", operatorNamespace, "--timeout", "8m")...)
			}
		}
		with := append(slices.Clone(values), "--set", "image.tag=dev", "--wait")
		return way{
			install: helm(append([]string{"install", "redquake", chart, "--create-namespace"}, with...)...),
			change:  helm(append([]string{"upgrade", "redquake", chart, "--set", "logLevel=debug"}, with...)...),
			back:    helm("rollback", "redquake", "1", "--wait"),
			remove:  helm("uninstall", "redquake", "--wait"),
			image:   "ghcr.io/redquake/redquake:dev",
			keeps:   true,
		}
	}
}

// byFile applies the manifests of a release. They are changed as a release would change them.
func byFile(n *namespace) way {
	first := os.Getenv("REDQUAKE_E2E_INSTALL")
	text, err := os.ReadFile(first)
	if err != nil {
		n.Fatal(err)
	}
	const flag = "        - --leader-elect\n"
	if !strings.Contains(string(text), flag) {
		n.Fatalf("%s has no line %q", first, flag)
	}
	second := filepath.Join(n.TempDir(), "install.yaml")
	changed := strings.Replace(string(text), flag, flag+"        - --zap-log-level=debug\n", 1)
	if err := os.WriteFile(second, []byte(changed), 0o600); err != nil {
		n.Fatal(err)
	}
	w := byKubectl("-f", first, second)
	w.image = "ghcr.io/redquake/redquake:dev"
	return w
}

// byOverlay applies an overlay with an image of its own, by kustomize.
func byOverlay(n *namespace) way {
	var folders []string
	for i, more := range []string{"", `
patches:
- target: {kind: Deployment, name: redquake-controller-manager}
  patch: |-
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --zap-log-level=debug}
`} {
		folder := filepath.Join(n.TempDir(), fmt.Sprint(i))
		base, err := filepath.Rel(folder, n.path("config", "default"))
		if err != nil {
			n.Fatal(err)
		}
		name, tag, _ := strings.Cut(otherImage, ":")
		text := fmt.Sprintf("resources: [%s]\nimages:\n- {name: ghcr.io/redquake/redquake, newName: %s, newTag: %s}\n%s",
			base, name, tag, more)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			n.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
			n.Fatal(err)
		}
		folders = append(folders, folder)
	}
	w := byKubectl("-k", folders[0], folders[1])
	w.image = otherImage
	return w
}

// byKubectl applies manifests. Before they are deleted, with the kinds and so with all objects, what runs is ended.
func byKubectl(flag, first, second string) way {
	apply := func(manifests string) func(*namespace) {
		return func(n *namespace) {
			n.Helper()
			n.command(nil, "kubectl", "apply", "--server-side", "--force-conflicts", flag, manifests)
			n.operatorRolledOut()
		}
	}
	return way{
		install: apply(first),
		change:  apply(second),
		back:    apply(first),
		remove: func(n *namespace) {
			n.Helper()
			n.command(nil, n.path("bin", "redquake"), "stop", "--all", "--runs", "-A")
			n.isKept()
			n.command(nil, "kubectl", "delete", flag, first)
		},
	}
}

// byArgoCD lets Argo CD install the chart. It runs no Job before a removal, but leaves the kinds with their objects.
func byArgoCD(n *namespace) way {
	argo := argocd.Start(n.T, cluster.config, cluster)
	argo.CommitFolder("chart", n.path("charts", "redquake"))
	app := argo.NewAutomated("chart", operatorNamespace, "CreateNamespace=true")
	argo.Set(app, map[string]any{"image": map[string]any{"tag": "dev"}}, "spec", "source", "helm", "valuesObject")
	var last argocd.Sync
	sync := func() {
		last = argo.MustSync(app, last)
		n.operatorRolledOut()
	}
	logLevel := func(level string) func(*namespace) {
		return func(*namespace) {
			argo.Patch(app, fmt.Sprintf(`{"spec":{"source":{"helm":{"valuesObject":{"logLevel":%s}}}}}`, level))
			sync()
		}
	}
	return way{
		install: func(*namespace) {
			argo.Create(app)
			sync()
		},
		change: logLevel(`"debug"`),
		back:   logLevel("null"),
		remove: func(n *namespace) {
			n.Helper()
			n.command(nil, n.path("bin", "redquake"), "stop", "--all", "--runs", "-A")
			argo.Delete(app)
		},
		image: "ghcr.io/redquake/redquake:dev",
		keeps: true,
	}
}

// operatorRolledOut waits until only the newest pods of the operator run.
func (n *namespace) operatorRolledOut() {
	n.Helper()
	n.eventually(5*time.Minute, "the operator is rolled out", func() (bool, string) {
		var d appsv1.Deployment
		err := cluster.Get(n.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: operatorDeployment}, &d)
		s := d.Status
		return err == nil && s.ObservedGeneration == d.Generation && s.UpdatedReplicas == *d.Spec.Replicas &&
			s.Replicas == s.UpdatedReplicas && s.AvailableReplicas == s.Replicas, fmt.Sprintf("%+v, %v", s, err)
	})
}

// removeByForce removes an installation whose test has failed, so that the next one does not meet it.
func (n *namespace) removeByForce() {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	for _, command := range [][]string{
		{n.path("bin", "redquake"), "stop", "--all", "--runs", "-A", "--wait", "1m"},
		{"kubectl", "delete", "namespace", n.name},
		{installed.Program(n.T, "helm"), "uninstall", "redquake", "--namespace", operatorNamespace, "--no-hooks", "--ignore-not-found"},
		{"kubectl", "delete", "--ignore-not-found", "-f", os.Getenv("REDQUAKE_E2E_INSTALL")},
	} {
		out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
		n.Logf("%q: %v\n%s", command, err, out)
	}
}

// command runs a command, and fails the test where it does, with what it wrote.
func (n *namespace) command(env []string, program string, arguments ...string) {
	n.Helper()
	command := exec.CommandContext(n.Context(), program, arguments...)
	command.Env = env
	if out, err := command.CombinedOutput(); err != nil {
		n.Fatalf("%s %q: %v\n%s", filepath.Base(program), arguments, err, out)
	}
}

// path is one in the repository.
func (n *namespace) path(elements ...string) string {
	n.Helper()
	path, err := testcluster.Path(elements...)
	if err != nil {
		n.Fatal(err)
	}
	return path
}
