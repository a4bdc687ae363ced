package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// load is what keeps the machine busy while tests run.
type load struct {
	loops int  // that compute
	disk  bool // one more that writes
	runs  int  // of each test beside it
}

// parseLoads reads a list such as 2,4:10,disk:5.
func parseLoads(text string, runs int) ([]load, error) {
	var loads []load
	for item := range strings.SplitSeq(text, ",") {
		kind, times, own := strings.Cut(strings.TrimSpace(item), ":")
		l := load{disk: kind == "disk", runs: runs}
		var err error
		if own {
			l.runs, err = strconv.Atoi(times)
		}
		if !l.disk && err == nil {
			l.loops, err = strconv.Atoi(kind)
		}
		if err != nil || l.runs < 1 || l.loops < 0 {
			return nil, fmt.Errorf("%q is no load: want a number of busy loops or disk, and perhaps :RUNS",
				item)
		}
		loads = append(loads, l)
	}
	return loads, nil
}

func (l load) String() string {
	switch {
	case l.disk:
		return "a loop that writes to the disk"
	case l.loops == 0:
		return "nothing"
	case l.loops == 1:
		return "1 busy loop"
	}
	return fmt.Sprintf("%d busy loops", l.loops)
}

// fileName is the load as a part of a file's name.
func (l load) fileName() string {
	if l.disk {
		return "disk"
	}
	return fmt.Sprintf("%d-loops", l.loops)
}

const (
	// busyCommand, and what to keep busy, are the arguments by which this program becomes one loop of
	// a load.
	busyCommand = "keep-busy"
	busyCPU     = "cpu"
	busyDisk    = "disk"
)

// start starts the processes of the load. The kernel kills them if this program ends without stop.
func (l load) start() (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	done, started := make(chan struct{}), make(chan error)
	ended := make(chan struct{})
	go func() {
		// A process gets its signal when the thread that started it ends: this one stays until stop.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		kinds := make([]string, l.loops, l.loops+1)
		for i := range kinds {
			kinds[i] = busyCPU
		}
		if l.disk {
			kinds = append(kinds, busyDisk)
		}
		var running []*exec.Cmd
		var failed error
		for _, kind := range kinds {
			c := exec.Command(self, busyCommand, kind)
			c.Stderr = os.Stderr
			c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			if failed = c.Start(); failed != nil {
				break
			}
			running = append(running, c)
		}
		started <- failed
		<-done
		for _, c := range running {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}()
	stop = func() { close(done); <-ended }
	if err := <-started; err != nil {
		stop()
		return nil, fmt.Errorf("start %v: %w", l, err)
	}
	return stop, nil
}

// keepBusy never returns.
func keepBusy(kind string) {
	runtime.GOMAXPROCS(1)
	if kind == busyDisk {
		fmt.Fprintln(os.Stderr, "stress: write to the disk:", writeForever(os.TempDir()))
		os.Exit(1)
	}
	for n := uint64(1); ; n = n*6364136223846793005 + 1442695040888963407 {
		if n == 0 { // never: keeps the compiler from dropping the loop
			os.Exit(1)
		}
	}
}

const (
	blockSize  = 4 << 20
	fileBlocks = 64 // 256 MiB, and then from the start again
)

// writeForever writes to a file without a name, which is gone when this process is, and has every
// block brought to the disk.
func writeForever(folder string) error {
	file, err := os.CreateTemp(folder, "stress")
	if err != nil {
		return err
	}
	err = os.Remove(file.Name())
	block := make([]byte, blockSize)
	for n := int64(0); err == nil; n = (n + 1) % fileBlocks {
		block[0]++
		_, writing := file.WriteAt(block, n*blockSize)
		err = errors.Join(writing, file.Sync())
	}
	return err
}
