//go:build integration

package stage

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/redquake/redquake/controllers"
	"github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// OwnControlPlane starts an API server with its etcd, and returns them and the places on it.
func OwnControlPlane(
	t *testing.T,
) (env *envtest.Environment, on func(*testing.T) *operatortest.Place) {
	t.Helper()
	env, err := cluster.StartControlPlane()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	to, err := client.NewWithWatch(env.Config, client.Options{Scheme: controllers.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return env, func(t *testing.T) *operatortest.Place {
		return operatortest.NewPlaceOn(t, env.Config, to)
	}
}

// Stop sends SIGSTOP to a process. It goes on when the test ends, or with the function that this
// returns.
func Stop(t *testing.T, pid int) (wake func()) {
	t.Helper()
	signal(t, pid, syscall.SIGSTOP)
	wake = func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	t.Cleanup(wake)
	return wake
}

func signal(t *testing.T, pid int, which syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, which); err != nil {
		t.Fatalf("signal %s to process %d: %v", which, pid, err)
	}
}

// PidOf finds a process that this test has started, by words of its command line.
func PidOf(t *testing.T, words ...string) int {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		text, _ := os.ReadFile(line)
		if !slices.ContainsFunc(words, func(word string) bool {
			return !bytes.Contains(text,
				[]byte(word))
		}) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(line)))
			return pid
		}
	}
	t.Fatalf("there is no process with %q", words)
	return 0
}

// PortOf is the port of a URL or an address.
func PortOf(host string) string {
	return strings.TrimRight(host[strings.LastIndex(host, ":")+1:], "/")
}
