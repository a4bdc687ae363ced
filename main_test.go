package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/version"
)

// asManager in the environment makes the test's program the manager, so that a test can run it.
const asManager = "REDQUAKE_TEST_AS_MANAGER"

func TestMain(m *testing.M) {
	if os.Getenv(asManager) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestVersion holds that the manager names its build without a cluster and without any other flag.
func TestVersion(t *testing.T) {
	manager := exec.Command(os.Args[0], "--version")
	manager.Env = append(os.Environ(), asManager+"=yes", "REDQUAKE_IMAGE=", "KUBECONFIG=/none")
	out, err := manager.CombinedOutput()
	if want := version.Of("manager") + "\n"; err != nil || string(out) != want {
		t.Errorf("manager --version: %q, %v; want %q", out, err, want)
	}
	if !strings.HasPrefix(string(out), "manager "+version.Version) {
		t.Errorf("%q does not name the version %s", out, version.Version)
	}
}

// TestManagerLinksNoEngine holds what the manager is made of: it decides about loads, which run elsewhere, and has no
// use for the engine, for drivers of databases or for a second validation of what the API server has admitted, in a
// process that may change much in a cluster.
func TestManagerLinksNoEngine(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	linked := strings.Fields(string(out))
	if len(linked) < 100 {
		t.Fatalf("go list names only %d packages", len(linked))
	}
	for _, path := range linked {
		for _, forbidden := range []string{
			"github.com/redquake/redquake/internal/engine", "github.com/redquake/redquake/internal/engine/workload",
			"github.com/redquake/redquake/internal/testing",
			"github.com/jackc/pgx", "github.com/go-sql-driver/mysql", "github.com/redis/go-redis",
			"github.com/redquake/redquake/internal/manifest", "k8s.io/apiextensions-apiserver/pkg/apiserver",
		} {
			if path == forbidden || strings.HasPrefix(path, forbidden+"/") {
				t.Errorf("the manager links %s", path)
			}
		}
	}
}

// TestUnknownFault holds that a manager does not start with a list of faults that it cannot have been meant to have.
func TestUnknownFault(t *testing.T) {
	err := run(settings{image: "redquake:test", faults: []string{"PodKill,NodeLos"}})
	if err == nil || !strings.Contains(err.Error(), `--faults: "NodeLos" is no type of fault; there are`) ||
		!strings.Contains(err.Error(), "NodeLoss, OperatorOutage, OutOfMemory, PodKill") {
		t.Errorf("started with an unknown fault: %v", err)
	}
}

// TestImageOfLoadPods holds that a manager that is told neither an image nor which pod is its own does not start, and
// says what to set.
func TestImageOfLoadPods(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	const text = `{clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}],
contexts: [{name: c, context: {cluster: c}}], current-context: c}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	for says, s := range map[string]settings{
		"no image for the load pods: set --agent-image, or $POD_NAMESPACE and $POD_NAME": {namespace: "redquake-system"},
		"no image for the load pods: read the operator's own pod: ": {
			faults:    []string{"*"},
			namespace: "redquake-system",
			pod:       "redquake-controller-manager-0",
		},
	} {
		if err := run(s); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("started without an image: %v, want %q", err, says)
		}
	}
}

// TestHostsOfRequests holds that a manager does not start with a list of hosts that allows another one, or none, than
// was meant.
func TestHostsOfRequests(t *testing.T) {
	for flag, s := range map[string]settings{
		"--prometheus-hosts": {image: "redquake:test", faults: []string{"*"}, prometheusHosts: "*"},
		"--notify-hosts":     {image: "redquake:test", faults: []string{"*"}, notifyHosts: "https://hooks.slack.com"},
		"--power-hook-url":   {image: "redquake:test", faults: []string{"*"}, powerHookURL: "power.example"},
	} {
		if err := run(s); err == nil || !strings.HasPrefix(err.Error(), flag+": ") {
			t.Errorf("started with no hosts in %s: %v", flag, err)
		}
	}
}

// TestFaultsOfComponentsAreApart holds that the rights for faults on nodes, and for those that delete data or fill a volume, come with the
// components that switch these on, and with nothing else.
func TestFaultsOfComponentsAreApart(t *testing.T) {
	apart := rightsIn(t, "config/components/node-faults/nodeloss.yaml",
		"config/components/node-faults/volumeattachdelay.yaml", "config/components/node-faults/zoneloss.yaml",
		"config/components/volume-faults/diskfull.yaml", "config/components/volume-faults/volumeloss.yaml")
	others := []string{"config/rbac/cluster_role.yaml", "config/rbac/role.yaml"}
	byKind, err := filepath.Glob("config/rbac/faults/[^k]*.yaml")
	if err != nil || len(byKind) < 10 {
		t.Fatalf("config/rbac/faults has %v, %v", byKind, err)
	}
	elsewhere := rightsIn(t, append(others, byKind...)...)
	for _, right := range []string{
		"patch nodes", "list nodes", "get persistentvolumes", "list volumeattachments",
		"create pods", "delete persistentvolumeclaims",
	} {
		if !slices.Contains(apart, right) {
			t.Errorf("no component grants %s", right)
		}
		if slices.Contains(elsewhere, right) {
			t.Errorf("the default installation grants %s", right)
		}
	}
	var lists []string
	for _, name := range []string{declared.NodeFaults, declared.VolumeFaults} {
		component, err := os.ReadFile("config/components/" + name + "/kustomization.yaml")
		if err != nil {
			t.Fatal(err)
		}
		flag := regexp.MustCompile(`--faults=(\S+)`).FindSubmatch(component)
		if flag == nil {
			t.Fatalf("the component %s does not set --faults", name)
		}
		lists = append(lists, string(flag[1]))
	}
	if on, err := declared.SwitchedOn(strings.Join(lists, ",")); err != nil || !slices.Equal(on, declared.Types()) {
		t.Errorf("the components switch on %v, %v; there are %v", on, err, declared.Types())
	}
	manager, err := os.ReadFile("config/manager/manager.yaml")
	if err != nil || strings.Contains(string(manager), "--faults") {
		t.Errorf("the manager of the default installation has its own list of faults; %v", err)
	}
}

// rightsIn are the rights that the roles in files grant, such as "get nodes".
func rightsIn(t *testing.T, paths ...string) (found []string) {
	t.Helper()
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var role rbacv1.ClusterRole // a binding has no rules
			if err := yaml.Unmarshal([]byte(document), &role); err != nil {
				t.Fatal(err)
			}
			for _, rule := range role.Rules {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						found = append(found, verb+" "+resource)
					}
				}
			}
		}
	}
	return found
}
