package node

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redquake/redquake/hack/lab/internal/settings"
)

// testReaper is the one of the test process: two would take each other's children.
var testReaper = sync.OnceValue(func() *reaper {
	r := newReaper()
	go r.run()
	return r
})

// startSupervised runs a shell as a daemon, under this test process instead of a node's PID 1.
func startSupervised(t *testing.T, script string) (*supervised, string) {
	t.Helper()
	logFile := filepath.Join(t.TempDir(), "log")
	s := &supervised{
		name: "daemon", argv: []string{"/bin/sh", "-c", script}, logFile: logFile,
		ready: func() bool { return true }, reaper: testReaper(),
	}
	go s.run()
	t.Cleanup(func() { s.hold() })
	waitFor(t, "the daemon to run", func() bool { return s.state() == "running" })
	return s, logFile
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited 10 s for %s", what)
		}
	}
}

func TestSupervisor(t *testing.T) {
	s, logFile := startSupervised(t, "echo started; exec sleep 60")
	starts := func() int {
		data, _ := os.ReadFile(logFile)
		return strings.Count(string(data), "started")
	}

	waitFor(t, "output in the log", func() bool { return starts() == 1 })
	s.signal(syscall.SIGKILL)
	waitFor(t, "the restart", func() bool { return starts() == 2 && s.state() == "running" })

	if err := s.pause(true); err != nil || s.state() != "paused" {
		t.Errorf("pause: %v, state %s", err, s.state())
	}
	if err := s.hold(); err != nil || s.state() != "held" {
		t.Errorf("hold of a paused daemon: %v, state %s", err, s.state())
	}
	if err := s.pause(true); err == nil {
		t.Error("pausing a held daemon: no error")
	}
	s.release()
	waitFor(t, "the start after release", func() bool { return starts() == 3 })
}

func TestOrders(t *testing.T) {
	s, _ := startSupervised(t, "exec sleep 60")
	socket := filepath.Join(t.TempDir(), "init.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go serve(listener, []*supervised{s})

	if lines, err := send(socket, Status); err != nil || !slices.Equal(lines, []string{"daemon running"}) {
		t.Errorf("status: %v, %v", lines, err)
	}
	if _, err := send(socket, Hold, "daemon"); err != nil || s.state() != "held" {
		t.Errorf("hold: %v, state %s", err, s.state())
	}
	if _, err := send(socket, Hold, "other"); err == nil || !strings.Contains(err.Error(), "daemons are daemon") {
		t.Errorf("unknown daemon: %v", err)
	}
	if _, err := send(socket, "stop", "daemon"); err == nil {
		t.Error("unknown order: no error")
	}
	if _, err := send(socket, Release, "daemon"); err != nil {
		t.Error(err)
	}
	// Else it may start while the test's folder is removed.
	waitFor(t, "the start after release", func() bool { return s.state() == "running" })
}

func TestANodeKeepsTheConfigurationOfItsStart(t *testing.T) {
	h := Host{Node: settings.Nodes[0]}
	file := filepath.Join(t.TempDir(), "containerd.toml")
	if err := os.WriteFile(file, []byte("version = 3"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := h.runsWith(map[string][]byte{file: []byte("version = 3")}); err != nil {
		t.Errorf("the same configuration: %v", err)
	}
	for what, configuration := range map[string]map[string][]byte{
		"another file": {file: []byte("version = 4")}, "a file more": {file: []byte("version = 3"), file + ".d": nil},
	} {
		if err := h.runsWith(configuration); err == nil || !strings.Contains(err.Error(), "hack/lab/lab down") {
			t.Errorf("%s: %v, want what to do", what, err)
		}
	}
}
