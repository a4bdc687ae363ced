//go:build integration

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redquake/redquake/internal/testing/await"
)

func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); name == "nsexec" || name == "pause" {
		main()
		return
	}
	os.Exit(m.Run())
}

// As the agent starts and ends a burden: paused first, then in the PID namespace of a container, and gone after SIGTERM to
// the process that the agent has started. Without root it is skipped.
func TestBurden(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("another namespace needs root")
	}
	pause, nsexec := called(t, "pause"), called(t, "nsexec")
	container := exec.CommandContext(t.Context(), "sleep", "infinity")
	container.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	start(t, container)

	// Only in the container's namespace is the first process the container.
	burden := exec.Command(pause, nsexec, "-p", "/proc/"+strconv.Itoa(container.Process.Pid)+"/ns/pid", "--",
		"sh", "-c", "echo $$; exec sleep infinity")
	out, err := burden.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, burden)
	if got := comm(burden.Process.Pid); got != "pause" {
		t.Errorf("before SIGCONT it is called %q", got)
	}
	await.Until(t, "it goes on after SIGCONT", func() error {
		if err := burden.Process.Signal(syscall.SIGCONT); err != nil {
			return err
		}
		got := comm(burden.Process.Pid)
		return await.That(got == "nsexec", "it is called %q", got)
	})
	line := make([]byte, 16)
	n, err := out.Read(line)
	if pid, bad := strconv.Atoi(strings.TrimSpace(string(line[:n]))); err != nil || bad != nil || pid < 2 || pid > 100 {
		t.Errorf("the command is process %q there (%v)", line[:n], err)
	}
	if err := burden.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = burden.Wait()
	if got := burden.ProcessState.ExitCode(); got != 128+int(syscall.SIGTERM) {
		t.Errorf("it ended with %d", got)
	}
}

// called is this program under a name.
func called(t *testing.T, name string) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(program, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func start(t *testing.T, command *exec.Cmd) {
	t.Helper()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
}

// comm is the name of a process; "" where there is none.
func comm(pid int) string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	return strings.TrimSpace(string(text))
}
