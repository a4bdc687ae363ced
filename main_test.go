package main

import (
	"os/exec"
	"strings"
	"testing"
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
