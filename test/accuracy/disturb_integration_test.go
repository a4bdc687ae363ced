//go:build integration

package accuracy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/redquake/redquake/internal/testing/await"
)

// disturbance keeps the load generator from running.
type disturbance int

const (
	quiet     disturbance = iota
	burnt                 // three processes burn CPU beside it
	halted                // it is stopped for 10 to 300 ms, often around the ends of outages
	throttled             // its CPU quota is less than it uses
)

// favour gives a process the highest priority beside those of real time: it gets nearly all the CPU that it asks for. 0
// is the calling thread.
func favour(pid int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, -20) }

// burn starts n processes that use all CPU they get, on the given CPUs only or on any.
func burn(t *testing.T, n int, cpus ...int) {
	t.Helper()
	for range n {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		if len(cpus) > 0 {
			pin(t, cmd.Process.Pid, cpus...)
		}
	}
}

// pin keeps a process on some CPUs.
func pin(t *testing.T, pid int, cpus ...int) {
	t.Helper()
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(pid, &set); err != nil {
		t.Fatalf("keep process %d on CPU %v: %v", pid, cpus, err)
	}
}

// keepAwake keeps idle CPUs from sleeping (/dev/cpu_dma_latency, see the kernel's "PM Quality Of Service Interface"): a
// hypervisor may take tens of milliseconds to run a virtual one again. Where the kernel does not offer that, they
// sleep.
func keepAwake(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile("/dev/cpu_dma_latency", os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		t.Log("idle CPUs may sleep: there is no /dev/cpu_dma_latency")
		return
	}
	if err == nil {
		_, err = f.Write(make([]byte, 4)) // 0 us, for as long as the file is open
	}
	if err != nil {
		t.Fatalf("keep idle CPUs from sleeping, which takes root: %v", err)
	}
	t.Cleanup(func() { _ = f.Close() })
}

// throttle limits the CPU of a process to a share of a core.
func throttle(t *testing.T, pid int, share float64) {
	t.Helper()
	const period = 100_000
	parent := "/sys/fs/cgroup/cpu"
	files := map[string]string{
		"cpu.cfs_period_us": strconv.Itoa(period),
		"cpu.cfs_quota_us":  strconv.Itoa(int(share * period)),
	}
	if _, err := os.Stat(filepath.Join(parent, "cgroup.procs")); err != nil {
		parent, files = "/sys/fs/cgroup", map[string]string{"cpu.max": fmt.Sprintf("%d %d", int(share*period), period)}
	}
	dir := filepath.Join(parent, fmt.Sprintf("redquake-accuracy-%d", pid))
	must := func(err error) {
		if err != nil {
			t.Fatalf("limit the CPU of the load generator, which takes root and a writable cgroup file system: %v", err)
		}
	}
	must(os.Mkdir(dir, 0o755))
	t.Cleanup(func() {
		if err := await.Try(context.Background(), await.Limit, func() error { return os.Remove(dir) }); err != nil {
			t.Error(err)
		}
	})
	for name, text := range files {
		must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	must(os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600))
}

// haltAround stops a process for 10 to 300 ms over the begin and the end of an outage that begins in a second (60 %
// each), and in its middle (30 %).
func haltAround(r *rand.Rand, process *os.Process, begin time.Time, length time.Duration) (wait func()) {
	type halt struct{ from, until time.Time }
	around := func(at time.Time) halt {
		length := time.Duration(10+r.IntN(290)) * time.Millisecond
		from := at.Add(-time.Duration(r.Int64N(int64(length))))
		return halt{from, from.Add(length)}
	}
	var halts []halt
	if r.IntN(10) < 6 {
		halts = append(halts, around(begin))
	}
	if r.IntN(10) < 3 {
		halts = append(halts, around(begin.Add(length/2)))
	}
	if r.IntN(10) < 6 {
		halts = append(halts, around(begin.Add(length)))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, h := range halts {
			await.PassTo(h.from, "the begin of a halt")
			_ = process.Signal(syscall.SIGSTOP)
			await.PassTo(h.until, "the end of a halt")
			_ = process.Signal(syscall.SIGCONT)
		}
	}()
	return func() { <-done }
}
