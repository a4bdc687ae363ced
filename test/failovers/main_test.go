//go:build integration

// Package failovers measures with `redquake load` itself what failovers of real deployments do to acknowledged writes
// and to clients.
package failovers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// binary is the built command.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "redquake")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		binary = filepath.Join(dir, "redquake")
		build := exec.Command("go", "build", "-o", binary, "../../cmd/redquake")
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // as the tests and the image are built: one cache for all
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// loading is a `redquake load` under way.
type loading struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err bytes.Buffer
}

// begin starts `redquake load`, and returns when it has loaded the server for lead.
func begin(t *testing.T, watched *redistest.Server, lead time.Duration, args ...string) *loading {
	t.Helper()
	l := &loading{t: t, cmd: exec.Command(binary, append([]string{"load", "-o", "json", "--prefill=false"}, args...)...)}
	l.cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	l.cmd.Stdout, l.cmd.Stderr = &l.out, &l.err
	before := served(t, watched)
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if l.cmd.ProcessState == nil {
			_ = l.cmd.Process.Kill()
			_ = l.cmd.Wait()
		}
	})
	await.Until(t, "the load begins", func() error {
		if n := served(t, watched) - before; n < 500 { // what prepares the load is less
			return fmt.Errorf("%s was sent %d commands", watched.Address(), n)
		}
		return nil
	})
	await.Pass(lead, "the load before the failover")
	return l
}

// served is how many commands a server has processed.
func served(t *testing.T, s *redistest.Server) int64 {
	t.Helper()
	var n int64
	if _, err := fmt.Sscan(s.Info("total_commands_processed"), &n); err != nil {
		t.Fatalf("INFO of %s: %v", s.Address(), err)
	}
	return n
}

// wait waits for the load's end and reads its result.
func (l *loading) wait() *result.Load {
	l.t.Helper()
	ended := l.cmd.Wait() // an error also where the verdict is not Pass
	r := &result.Load{}
	if err := json.Unmarshal(l.out.Bytes(), r); err != nil {
		l.t.Fatalf("redquake load: %v: %v in\n%s\n%s", ended, err, l.out.String(), l.err.String())
	}
	if r.Outcome != result.Finished {
		l.t.Fatalf("outcome %s: %s", r.Outcome, r.Message)
	}
	return r
}
