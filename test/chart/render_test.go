//go:build integration

package chart_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/golden"
	"github.com/redquake/redquake/internal/testing/manifests"
)

// TestRendersWhatKustomizeMakes holds that an installation by helm is one by kustomize, object by object and field by
// field but for the labels of either tool: what is added to config and forgotten in the chart is found here.
func TestRendersWhatKustomizeMakes(t *testing.T) {
	for version, program := range versions {
		h := newHelm(t, program)
		everything := []string{"node-faults", "network-faults", "volume-faults", "prometheus", "dashboards", "high-availability"}
		for name, tc := range map[string]struct {
			values  []string
			objects []*unstructured.Unstructured
		}{
			"default": {objects: manifests.Installation(t, "default")},
			"everything": {
				values: []string{
					"--set", "replicas=2,grafana.enabled=true,metrics.serviceMonitor.enabled=true,metrics.alerts.enabled=true",
					"--set", "faults.NodeLoss=true,faults.VolumeAttachDelay=true,faults.ZoneLoss=true,networkFaults=true",
					"--set", "faults.DiskFull=true,faults.VolumeLoss=true",
					"--set", "prometheusHosts={prometheus-k8s.monitoring.svc}",
				},
				objects: manifests.Installation(t, "default", everything...),
			},
			"one namespace": {
				values: []string{"--set", "namespaces={my-namespace},metrics.enabled=false,dashboard.enabled=false"},
				objects: slices.Concat(manifests.Installation(t, "namespaced"), manifests.Installation(t, "namespaced/cluster"),
					inNamespace("my-namespace", manifests.Installation(t, "namespaced/namespace"))),
			},
			"one namespace, faults on nodes": {
				values: []string{
					"--set", "namespaces={my-namespace},metrics.enabled=false,dashboard.enabled=false",
					"--set", "faults.NodeLoss=true,faults.VolumeAttachDelay=true,faults.ZoneLoss=true,networkFaults=true",
					"--set", "faults.DiskFull=true,faults.VolumeLoss=true",
				},
				objects: slices.Concat(manifests.Installation(t, "namespaced", "node-faults", "network-faults", "volume-faults"),
					manifests.Installation(t, "namespaced/cluster", "node-faults", "network-faults", "volume-faults"),
					inNamespace("my-namespace", manifests.Installation(t, "namespaced/namespace"))),
			},
		} {
			t.Run(version+", "+name, func(t *testing.T) {
				values := append([]string{"--set", "image.tag=dev"}, tc.values...)
				want, got := comparable(t, tc.objects), comparable(t, h.rendered(t, "redquake-system", values...))
				if len(want) < 40 {
					t.Fatalf("kustomize makes %d objects", len(want))
				}
				for _, name := range slices.Sorted(maps.Keys(want)) {
					if got[name] == nil {
						t.Errorf("the chart lacks %s", name)
					} else if diff := cmp.Diff(want[name], got[name]); diff != "" {
						t.Errorf("%s: -kustomize +helm\n%s", name, diff)
					}
				}
				for _, name := range slices.Sorted(maps.Keys(got)) {
					if want[name] == nil {
						t.Errorf("the chart has %s, which kustomize does not make", name)
					}
				}
			})
		}
	}
}

func inNamespace(namespace string, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	for _, o := range objects {
		o.SetNamespace(namespace)
	}
	return objects
}

// comparable are objects by kind and name, without what each tool adds of its own: the CRDs, which helm has apart, the
// namespace, which helm creates itself, and labels.
func comparable(t *testing.T, objects []*unstructured.Unstructured) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" || o.GetKind() == "Namespace" {
			continue
		}
		labels := o.GetLabels()
		for _, own := range []string{"managed-by", "part-of", "instance", "version"} {
			delete(labels, "app.kubernetes.io/"+own)
		}
		delete(labels, "helm.sh/chart")
		if o.GetKind() == "ClusterRole" && o.GetName() == "redquake-manager-role" {
			delete(labels, "app.kubernetes.io/name") // which controller-gen does not write
		}
		o.SetLabels(labels)
		if o.GetKind() == "Deployment" {
			lastOfEach(t, o)
		}
		if strings.HasPrefix(o.GetAPIVersion(), "admissionregistration.k8s.io/") {
			// kustomize gives them one: it does not know that they are of the cluster. And where it patches other objects, it
			// writes line breaks of expressions twice.
			o.SetNamespace("")
			o.Object = withoutEmptyLines(o.Object).(map[string]any)
		}
		name := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
		if before := all[name]; before != nil && !cmp.Equal(before, o.Object) {
			t.Errorf("there are two different %s", name)
		}
		all[name] = o.Object
	}
	return all
}

func withoutEmptyLines(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = withoutEmptyLines(v[key])
		}
	case []any:
		for i := range v {
			v[i] = withoutEmptyLines(v[i])
		}
	case string:
		return strings.ReplaceAll(v, "\n\n", "\n")
	}
	return value
}

// lastOfEach keeps the flags of the manager that count: config/namespaced adds some that are there already. Sorted, as
// their order does not matter.
func lastOfEach(t *testing.T, deployment *unstructured.Unstructured) {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 1 {
		t.Fatalf("containers %v, %v", containers, err)
	}
	container := containers[0].(map[string]any)
	flags := map[string]string{}
	for _, argument := range container["args"].([]any) {
		flag, value, _ := strings.Cut(argument.(string), "=")
		flags[flag] = value
	}
	var all []any
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		all = append(all, flag+"="+flags[flag])
	}
	container["args"] = all
	if err := unstructured.SetNestedSlice(deployment.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
}

// TestGolden holds what sets of values render to: whatever changes for users is seen in a diff. Of roles and policies,
// which config has and the test above compares, it is their names.
func TestGolden(t *testing.T) {
	h := newHelm(t, "helm")
	for name, values := range map[string]string{
		"default":    "{}",
		"namespaces": "{namespaces: [shop, cart], networkPolicy: {loadPods: true}, dashboard: {enabled: false}}",
		"everything": `{replicas: 2, grafana: {enabled: true}, notifyHosts: [hooks.slack.com, "*.example.com"], logLevel: debug,
  metrics: {serviceMonitor: {enabled: true, labels: {release: monitoring}}, alerts: {enabled: true, labels: {release: monitoring}}},
  faults: {NodeLoss: true, VolumeAttachDelay: true, VolumeLoss: true, DiskFull: true, ZoneLoss: true}, networkFaults: true,
  prometheusHosts: [prometheus-k8s.monitoring.svc], powerHook: {url: "https://power.infra.svc/v1", secretName: power-hook},
  policy: {version: v1alpha1, maxFaults: 3, rules: [{name: system, namespaces: {names: [kube-system]}, forbid: {faults: ["*"]}}]}}`,
		"mirror": `{image: {repository: mirror.example/redquake, digest: "sha256:` + strings.Repeat("0123456789abcdef", 4) + `"},
  imagePullSecrets: [{name: mirror}], nodeSelector: {pool: tools}, tolerations: [{key: tools, operator: Exists}],
  affinity: {nodeAffinity: {}}, podAnnotations: {team: sre}, podLabels: {team: sre}, priorityClassName: system-cluster-critical}`,
		"only-two-faults": "{faults: {" + allBut(v1alpha1.FaultPodKill, v1alpha1.FaultFailover) + "}}",
		"least": `{metrics: {enabled: false}, dashboard: {enabled: false}, networkPolicy: {enabled: false},
  uninstall: {stopRuns: false}, resources: {requests: {cpu: 10m}, limits: {memory: 256Mi}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			for _, o := range manifests.Objects(t, name, []byte(h.must(t, h.template("chaos", "-f", file)...))) {
				fmt.Fprintf(&text, "# %s %s\n", o.GetKind(), strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
				if strings.HasPrefix(o.GetAPIVersion(), "rbac.") || strings.HasPrefix(o.GetAPIVersion(), "admissionregistration.") ||
					o.GetKind() == "PrometheusRule" || strings.HasPrefix(o.GetName(), "redquake-dashboard-") {
					continue
				}
				one, err := yaml.Marshal(o.Object)
				if err != nil {
					t.Fatal(err)
				}
				text.Write(one)
			}
			golden.Compare(t, filepath.Join("testdata", name+".yaml"), text.String())
		})
	}
}

// allBut are values of faults: false for all kinds but these.
func allBut(on ...v1alpha1.FaultType) string {
	var off []string
	for _, kind := range declared.Types() {
		if !slices.Contains(on, kind) {
			off = append(off, string(kind)+": false")
		}
	}
	return strings.Join(off, ", ")
}

// TestEachKindIsASwitch holds for every kind of fault that its value takes away the rights for it, and only these, and
// has the manager refuse it, and that the values, their schema and the manager know the same kinds.
func TestEachKindIsASwitch(t *testing.T) {
	h := newHelm(t, "helm")
	byDefault, err := declared.SwitchedOn("*")
	if err != nil {
		t.Fatal(err)
	}
	var values struct{ Faults map[v1alpha1.FaultType]bool }
	path, err := cluster.Path("charts/redquake/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, &values)
	}
	if err != nil {
		t.Fatal(err)
	}
	if known := slices.Sorted(maps.Keys(values.Faults)); !slices.Equal(known, declared.Types()) {
		t.Errorf("values.yaml knows %v, want %v", known, declared.Types())
	}
	before := roles(t, h.rendered(t, "chaos"))
	for _, kind := range declared.Types() {
		t.Run(string(kind), func(t *testing.T) {
			on := slices.Contains(byDefault, kind)
			if values.Faults[kind] != on {
				t.Errorf("values.yaml has %t, the manager %t", values.Faults[kind], on)
			}
			objects := h.rendered(t, "chaos", "--set", fmt.Sprintf("faults.%s=%t", kind, !on)) // refused if the schema has it not
			var want []string
			for _, k := range declared.All {
				for _, clusterScoped := range []bool{false, true} {
					// those of the network have a value of their own: by Chaos Mesh they are on
					if k.Type == kind && k.Component != declared.NetworkFaults && len(k.On(clusterScoped)) > 0 {
						want = append(want, "redquake-"+k.RoleName(clusterScoped))
					}
				}
			}
			now := roles(t, objects)
			more, less := now, before
			if on {
				more, less = before, now
			}
			differ := slices.DeleteFunc(slices.Clone(more), func(name string) bool { return slices.Contains(less, name) })
			slices.Sort(want)
			if !slices.Equal(differ, want) || len(more) != len(less)+len(want) {
				t.Errorf("it switches the roles %v, want %v", differ, want)
			}
			list := faultsFlag(t, objects)
			is, err := declared.SwitchedOn(list)
			if err != nil || slices.Contains(is, kind) == on || len(is) != len(byDefault)+map[bool]int{true: -1, false: 1}[on] {
				t.Errorf("--faults=%s is %v, %v", list, is, err)
			}
		})
	}
}

// TestNamesThatYAMLReadsAsOthers holds that a namespace stays text: null, which YAML takes for none, would bind the
// operator's rights in another namespace, and a number would not be accepted.
func TestNamesThatYAMLReadsAsOthers(t *testing.T) {
	h := newHelm(t, "helm")
	names := []string{"null", "1234", "true", "1e3"}
	var bound []string
	for _, o := range h.rendered(t, "456", "--set-string", "namespaces={"+strings.Join(names, ",")+"}", "--set",
		"networkPolicy.loadPods=true") {
		if o.GetName() == "redquake-namespace-rolebinding" || o.GetName() == "redquake-load-pods" {
			bound = append(bound, o.GetNamespace())
		} else if o.GetNamespace() != "" && o.GetNamespace() != "456" {
			t.Errorf("%s %s is in namespace %s", o.GetKind(), o.GetName(), o.GetNamespace())
		}
	}
	slices.Sort(bound)
	if want := slices.Sorted(slices.Values(slices.Concat(names, names))); !slices.Equal(bound, want) {
		t.Errorf("bound in %q, want %q", bound, want)
	}
}

// roles are the names of the ClusterRoles that are bound.
func roles(t *testing.T, objects []*unstructured.Unstructured) (names []string) {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == "ClusterRoleBinding" {
			name, _, err := unstructured.NestedString(o.Object, "roleRef", "name")
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// faultsFlag is the list of the manager's --faults.
func faultsFlag(t *testing.T, objects []*unstructured.Unstructured) string {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if _, list, found := strings.Cut(line, "--faults="); found {
				return strings.Trim(strings.TrimSpace(list), "'")
			}
		}
	}
	t.Fatal("the manager has no --faults")
	return ""
}

// TestRefusedValues holds that helm says of wrong values which they are, before anything is installed.
func TestRefusedValues(t *testing.T) {
	for version, program := range versions {
		h := newHelm(t, program)
		for _, tc := range []struct{ values, says string }{
			{"fault.PodKill=false", "fault"},
			{"faults.PodKil=false", "PodKil"},
			{"faults.PodKill=no", "PodKill"},
			{"namespaces={Shop}", "Shop"},
			{"namespaces={shop,shop}", "namespaces"},
			{"replicas=0", "replicas"},
			{"image.digest=latest", "digest"},
			{"notifyHosts={https://hooks.slack.com}", "notifyHosts"},
			{"powerHook.url=power.infra.svc", "powerHook"},
			{"resources.limits.memory=null", "memory"},
			{"logLevel=verbose", "logLevel"},
			{"uninstall.waitSeconds=0", "waitSeconds"},
			{"uninstall.waitSeconds=null", "waitSeconds"},
			{"faults.Config=null", "Config"},
			{"grafana.labels=null", "labels"},
			{"image.repository=x:1 #", "repository"},
			{"metrics.prometheus.serviceAccount=x y", "serviceAccount"},
			{"networkPolicy.loadPods=true", "networkPolicy.loadPods: set namespaces"},
			{"metrics.enabled=false,metrics.alerts.enabled=true", "metrics.alerts: set metrics.enabled"},
			{"metrics.enabled=false,metrics.serviceMonitor.enabled=true", "serviceMonitor: set metrics.enabled"},
		} {
			t.Run(version+", "+tc.values, func(t *testing.T) {
				out, stderr, err := h.run(t, h.template("chaos", "--set", tc.values)...)
				if err == nil || !strings.Contains(stderr, tc.says) || out != "" {
					t.Errorf("%v, stderr\n%s\nwant %q, stdout of %d bytes", err, stderr, tc.says, len(out))
				}
			})
		}
		t.Run(version+", lint", func(t *testing.T) { h.must(t, "lint", "--strict", h.chart) })
	}
}
