package node

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// reaper starts processes and collects every child that ends: those it started and, as this is PID
// 1, those whose parents have ended. One loop does all waiting, since two would reap each other's
// children.
type reaper struct {
	mu    sync.Mutex
	exits map[int]chan syscall.WaitStatus
}

func newReaper() *reaper {
	return &reaper{exits: map[int]chan syscall.WaitStatus{}}
}

// start runs argv with output to log. The channel receives once, when the process has ended.
func (r *reaper) start(argv, env []string, log *os.File) (int, <-chan syscall.WaitStatus, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, err
	}
	defer null.Close()
	r.mu.Lock() // until the channel exists, so that the loop cannot miss a process that ends at once
	defer r.mu.Unlock()
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Dir:   "/",
		Env:   env,
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, nil, err
	}
	exit := make(chan syscall.WaitStatus, 1)
	r.exits[pid] = exit
	return pid, exit, nil
}

// run collects children for ever.
func (r *reaper) run() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.ECHILD):
			time.Sleep(50 * time.Millisecond)
			continue
		case err != nil:
			continue
		}
		r.mu.Lock()
		exit, ours := r.exits[pid]
		delete(r.exits, pid)
		r.mu.Unlock()
		if ours {
			exit <- status
		}
	}
}
