//go:build e2e

package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	testcluster "github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/command"
)

// TestCommandLine runs the sample of the first steps as a new user does, by the program that `make build` has built.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	commandLine(t)
}

func commandLine(t *testing.T) {
	t.Run("run", func(t *testing.T) { runSample(t) })
	t.Run("interrupted", func(t *testing.T) { interruptSample(t) })
}

const (
	steadyLoad = "steady-load"
	steadyKill = "steady-kill"
)

// redquake starts the program in the namespace.
func (n *namespace) redquake(args ...string) *command.Process {
	n.Helper()
	program, err := testcluster.Path("bin/redquake")
	if err != nil {
		n.Fatal(err)
	}
	return command.Start(n.T, program, nil, append(args, "-n", n.name)...)
}

func sampleFile(t *testing.T) string {
	t.Helper()
	file, err := testcluster.Path("config/samples/pod-kill-when-steady.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// runSample expects the lines of a live view, the verdict, its exit code and the report.
func runSample(t *testing.T) {
	n := newNamespace(t, "cli")
	report := filepath.Join(t.TempDir(), "report.html")
	process := n.redquake("run", "-f", sampleFile(t), "--report", report, "--timeout", "6m")
	code := process.Code()
	test, fault := &v1alpha1.RedisLoadTest{}, &v1alpha1.RedisFault{}
	if !n.get(steadyLoad, test) || !n.get(steadyKill, fault) {
		t.Fatal("the objects are not there")
	}
	want := 0
	switch {
	case test.Status.Verdict == v1alpha1.VerdictFail || fault.Status.Verdict == v1alpha1.VerdictFail:
		want = 1
	case test.Status.Verdict != v1alpha1.VerdictPass || fault.Status.Verdict != v1alpha1.VerdictPass:
		want = 2
	}
	if code != want || fault.Status.Verdict == "" || fault.Status.Impact == nil || fault.Status.Impact.Outage == nil {
		t.Errorf("exit code %d; the load is %s, the fault %s", code, test.Status.Verdict, fault.Status.Verdict)
	}
	for _, line := range []string{
		"redisloadtest/" + steadyLoad + "  Running",
		"redisfault/" + steadyKill + "  +0s Injected", " Recovered", "/s",
	} {
		if !strings.Contains(process.Err.String(), line) {
			t.Errorf("no %q in the live view", line)
		}
	}
	if !strings.Contains(process.Out.String(), string(fault.Status.Verdict)+": fault "+n.name+"/"+steadyKill+"\n") ||
		!strings.Contains(process.Out.String(), "\nOutage ") {
		t.Errorf("the results lack the fault")
	}
	if page, err := os.ReadFile(report); err != nil || !bytes.Contains(page, []byte(steadyKill)) {
		t.Errorf("the report has %d bytes, %v", len(page), err)
	}
	again := n.redquake("run", "-f", sampleFile(t))
	if code := again.Code(); code != 3 || !strings.Contains(again.Err.String(), "an object runs once") {
		t.Errorf("a second run: exit code %d", code)
	}
}

// interruptSample presses Ctrl-C once the fault waits, and expects that everything is over and reverted when the
// program ends.
func interruptSample(t *testing.T) {
	n := newNamespace(t, "ctrl-c")
	process := n.redquake("run", "-f", sampleFile(t))
	n.eventually(patience, "the program has created the fault", func() (bool, string) {
		return n.get(steadyKill,
			&v1alpha1.RedisFault{}), ""
	})
	n.waitFault(steadyKill, 3*time.Minute, v1alpha1.ReasonWaitingForSteady)
	if err := process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := process.Code(); code != 130 {
		t.Errorf("exit code %d", code)
	}
	test, fault := &v1alpha1.RedisLoadTest{}, &v1alpha1.RedisFault{}
	if !n.get(steadyLoad, test) || !n.get(steadyKill, fault) || !test.Spec.Abort || !fault.Spec.Abort {
		t.Fatal("the objects are not aborted")
	}
	if fault.Status.Holding != nil && *fault.Status.Holding || fault.Status.InjectedAt != nil ||
		!strings.Contains(process.Out.String(), string(fault.Status.Verdict)+": fault "+n.name+"/"+steadyKill+"\n") {
		t.Errorf("the fault is %+v", fault.Status.Conditions)
	}
	n.eventually(patience, "no load pod runs", func() (bool, string) {
		pods := n.loadPods(steadyLoad)
		for i := range pods {
			if pods[i].Status.Phase == "Running" {
				return false, pods[i].Name
			}
		}
		return true, ""
	})
	if left := n.active(); left > 0 {
		t.Errorf("%d faults act", left)
	}
}

// active is how many faults of the namespace act.
func (n *namespace) active() int {
	n.Helper()
	var acting v1alpha1.RedisFaultList
	n.list(&acting, client.MatchingFields{"status.holding": "true"})
	return len(acting.Items)
}
