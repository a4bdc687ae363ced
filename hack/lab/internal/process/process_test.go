package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

func TestParseStat(t *testing.T) {
	const tail = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21"
	for name, comm := range map[string]string{"plain": "(etcd)", "with parentheses and spaces": "(a) S 1 (b c))"} {
		t.Run(name, func(t *testing.T) {
			state, start, err := parseStat([]byte("42 " + comm + tail))
			if err != nil || state != 'S' || start != 4711 {
				t.Errorf("got state %c, start %d, %v; want S, 4711", state, start, err)
			}
		})
	}
	for _, bad := range []string{"", "42 (x) S 1", "42 (x"} {
		if _, _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("parseStat(%q): no error", bad)
		}
	}
}

func TestRecycledPidIsNotSignalled(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	id, err := Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	earlier := Identity{PID: id.PID, Start: id.Start - 1} // the process that had this pid before
	if err := earlier.Signal(syscall.SIGKILL); !errors.Is(err, ErrGone) {
		t.Errorf("signalling the earlier process: %v, want ErrGone", err)
	}
	if !id.Alive() {
		t.Fatal("the process that took over the pid was killed")
	}
	if err := id.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if id.Alive() {
		t.Error("still alive after SIGKILL")
	}
}

func TestZombieIsGone(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Wait until it is a zombie, without reaping it.
	for {
		if _, err := Identify(cmd.Process.Pid); errors.Is(err, ErrGone) {
			break
		}
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", cmd.Process.Pid)); err != nil {
		t.Error("the zombie was reaped by somebody else")
	}
	cmd.Wait()
}

func TestLoad(t *testing.T) {
	self, err := Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "run", "me")
	if _, err := Load(path, ""); !errors.Is(err, ErrGone) {
		t.Errorf("missing record: %v, want ErrGone", err)
	}
	if err := self.Save(path); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, "/no/such/cgroup"); !errors.Is(err, ErrGone) {
		t.Errorf("process outside the cgroup: %v, want ErrGone", err)
	}
	os.WriteFile(path, []byte("half"), 0o644)
	if _, err := Load(path, ""); !errors.Is(err, ErrGone) {
		t.Errorf("half a record: %v, want ErrGone", err)
	}
}

func TestInCgroup(t *testing.T) {
	const v1 = "6:freezer:/redquake-lab/daemons\n4:memory:/other\n0::/\n"
	for path, want := range map[string]bool{
		"/redquake-lab":         true,
		"/redquake-lab/daemons": true,
		"/redquake":             false,
		"/redquake-lab/node-a":  false,
	} {
		if got := inCgroup(v1, path); got != want {
			t.Errorf("inCgroup(%q) = %v, want %v", path, got, want)
		}
	}
}
