//go:build integration

package bottleneck

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
	"github.com/redquake/redquake/internal/testing/tcptest"
)

// pid returns the process ID of a server, for cgroups.
func pid(t *testing.T, server *redistest.Server) int {
	t.Helper()
	n, err := strconv.Atoi(server.Info("process_id"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// prioritize raises the scheduling priority of a server, so that it gets its core on a busy machine. A nice value would
// apply only within the session.
func prioritize(t *testing.T, pid int) {
	t.Helper()
	err := tryGroup(t, pid, "cpu", func(v2 bool) map[string]string {
		if v2 {
			return map[string]string{"cpu.weight": "10000"}
		}
		return map[string]string{"cpu.shares": "262144"}
	})
	if err != nil {
		t.Logf("the server must share its core with what else runs here: %v", err)
	}
}

// group moves a process into a new cgroup, at the root of this machine's v1 controller or of v2. Only without root may
// that fail: the test is skipped then.
func group(t *testing.T, pid int, controller string, files func(v2 bool) map[string]string) {
	t.Helper()
	err := tryGroup(t, pid, controller, files)
	if err != nil && os.Geteuid() != 0 {
		t.Skipf("no cgroup can be made here, which takes root: %v", err)
	}
	if err != nil {
		t.Fatalf("no cgroup can be made here, which takes a writable cgroup file system: %v", err)
	}
}

func tryGroup(t *testing.T, pid int, controller string, files func(v2 bool) map[string]string) error {
	t.Helper()
	parent, v2 := filepath.Join("/sys/fs/cgroup", controller), false
	if _, err := os.Stat(filepath.Join(parent, "cgroup.procs")); err != nil {
		parent, v2 = "/sys/fs/cgroup", true
	}
	dir := filepath.Join(parent, fmt.Sprintf("redquake-test-%d", pid))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	t.Cleanup(func() { // before the process ends; a group with processes cannot be removed
		_ = os.WriteFile(filepath.Join(parent, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600)
		if err := await.Try(context.Background(), await.Limit, func() error { return os.Remove(dir) }); err != nil {
			t.Error(err)
		}
	})
	for name, text := range files(v2) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600)
}

// capCPU limits a process to a share of a core, as a container's limit does. It gets that share on a busy machine as
// well.
func capCPU(t *testing.T, pid int, cores float64) {
	t.Helper()
	quota := strconv.Itoa(int(cores * 100_000))
	group(t, pid, "cpu", func(v2 bool) map[string]string {
		if v2 {
			return map[string]string{"cpu.max": quota + " 100000", "cpu.weight": "10000"}
		}
		return map[string]string{"cpu.cfs_quota_us": quota, "cpu.shares": "262144"}
	})
}

// throttleWrites limits the writes per second of a process to the device of dir. If that is not possible it logs this
// and continues.
func throttleWrites(t *testing.T, pid int, dir string, perSecond int) {
	t.Helper()
	var stat syscall.Stat_t
	if err := syscall.Stat(dir, &stat); err != nil {
		t.Fatal(err)
	}
	major, minor := stat.Dev>>8&0xfff, stat.Dev&0xff
	device := fmt.Sprintf("%d:%d", major, minor)
	if _, err := os.Stat("/sys/dev/block/" + device); err != nil {
		t.Logf("the disk is not throttled: %s is no block device", device)
		return
	}
	if os.Geteuid() != 0 {
		t.Log("the disk is not throttled: that takes root")
		return
	}
	group(t, pid, "blkio", func(v2 bool) map[string]string {
		if v2 {
			return map[string]string{"io.max": fmt.Sprintf("%s wiops=%d", device, perSecond)}
		}
		return map[string]string{"blkio.throttle.write_iops_device": fmt.Sprintf("%s %d", device, perSecond)}
	})
	t.Logf("device %s takes %d writes/s from Redis", device, perSecond)
}

// delayed starts a proxy that delays all data in both directions, and returns its address.
func delayed(t *testing.T, address string, by time.Duration) string {
	t.Helper()
	return tcptest.Proxy(t, address, func(to, from net.Conn, _ bool) { hold(to, from, by) })
}

// hold forwards each piece after the delay.
func hold(to, from net.Conn, by time.Duration) {
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces := make(chan piece, 4096)
	var writer sync.WaitGroup
	writer.Go(func() {
		for p := range pieces {
			await.PassTo(p.due, "the delay of the network")
			if _, err := to.Write(p.data); err != nil {
				_ = from.Close()
			}
		}
	})
	defer writer.Wait()
	defer close(pieces)
	for {
		data := make([]byte, 4096)
		n, err := from.Read(data)
		if n > 0 {
			pieces <- piece{data[:n], time.Now().Add(by)}
		}
		if err != nil {
			return
		}
	}
}
