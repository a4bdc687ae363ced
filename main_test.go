package main

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	injector "github.com/redquake/redquake/internal/fault"
)

// TestManagerLinksNoEngine holds what the manager is made of: it decides about loads, which run elsewhere, and has no use for the engine, for
// drivers of databases or for a second validation of what the API server has admitted, in a process that may change much in a cluster.
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
			"github.com/redquake/redquake/internal/engine", "github.com/redquake/redquake/internal/engine/workload", "github.com/redquake/redquake/internal/testing",
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
	err := run(settings{image: "redquake:test", faults: "PodKill,NodeLos"})
	if err == nil || !strings.Contains(err.Error(), `--faults: "NodeLos" is no type of fault; there are`) || !strings.Contains(err.Error(), "NodeLoss, PodKill") {
		t.Errorf("started with an unknown fault: %v", err)
	}
}

// TestNodeFaultsAreApart holds that the rights for faults on nodes come with the component that switches these on, and with nothing else.
func TestNodeFaultsAreApart(t *testing.T) {
	rights := func(path string) (found []string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict(text, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					found = append(found, verb+" "+resource)
				}
			}
		}
		return found
	}
	ofNodes := rights("config/components/node-faults/role.yaml")
	for _, right := range []string{"patch nodes", "list nodes", "get persistentvolumes", "list volumeattachments"} {
		if !slices.Contains(ofNodes, right) {
			t.Errorf("the component does not grant %s", right)
		}
		for _, path := range []string{"config/rbac/cluster_role.yaml", "config/rbac/role.yaml"} {
			if slices.Contains(rights(path), right) {
				t.Errorf("%s grants %s", path, right)
			}
		}
	}
	component, err := os.ReadFile("config/components/node-faults/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	flag := regexp.MustCompile(`--faults=(\S+)`).FindSubmatch(component)
	if flag == nil {
		t.Fatal("the component does not set --faults")
	}
	if on, err := injector.SwitchedOn(string(flag[1])); err != nil || !slices.Equal(on, injector.Types()) {
		t.Errorf("the component switches on %v, %v; there are %v", on, err, injector.Types())
	}
	manager, err := os.ReadFile("config/manager/manager.yaml")
	if err != nil || strings.Contains(string(manager), "--faults") {
		t.Errorf("the manager of the default installation has its own list of faults; %v", err)
	}
}
