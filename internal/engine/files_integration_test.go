//go:build integration

package engine

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// fewFiles names the server for the process of TestFewFiles that may open few files.
const fewFiles = "REDQUAKE_TEST_FEW_FILES"

// More connections than the process may open files are refused before the first, with both numbers. A limit that is
// met all the same is named as that of the process, and never as a server that does not answer.
func TestFewFiles(t *testing.T) {
	if address := os.Getenv(fewFiles); address != "" {
		p := realPlan(address)
		p.Client.Connections, p.Shape.Users = 200, 200
		wantReason(t, p, plan.ProcessLimit, "the load needs 200 connections, and this process may have 64 open files")
		var files []*os.File
		for {
			f, err := os.Open(os.DevNull)
			if err != nil {
				break
			}
			files = append(files, f)
		}
		wantReason(t, p, plan.ProcessLimit, "this process has as many open files as it may")
		for _, f := range files {
			_ = f.Close()
		}
		return
	}
	server := redistest.NewServer(t, redistest.Options{})
	limited := exec.Command("sh", "-c", `ulimit -n 64 && exec "$0" -test.run '^TestFewFiles$'`, os.Args[0])
	limited.Env = append(os.Environ(), fewFiles+"="+server.Address())
	if out, err := limited.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v:\n%s", err, out)
	}
}
