package node

import (
	"fmt"
	"log"
	"os"
	"sync"
	"syscall"
	"time"
)

// supervised is one daemon of a node: it is started again when it ends, as systemd would, unless it
// is held.
type supervised struct {
	name      string
	argv, env []string
	logFile   string
	ready     func() bool // what must be there before it is started
	reaper    *reaper

	mu     sync.Mutex
	pid    int // 0: not running
	held   bool
	paused bool
}

const restartDelay = time.Second

// run keeps the daemon running for ever.
func (s *supervised) run() {
	for {
		if s.isHeld() || !s.ready() {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		exit, err := s.start()
		if err != nil {
			log.Printf("%s: %v", s.name, err)
			time.Sleep(restartDelay)
			continue
		}
		status := <-exit
		s.mu.Lock()
		s.pid, s.paused = 0, false
		s.mu.Unlock()
		if !s.isHeld() {
			log.Printf("%s ended: %s; starting it again", s.name, describe(status))
			time.Sleep(restartDelay)
		}
	}
}

func (s *supervised) start() (<-chan syscall.WaitStatus, error) {
	out, err := os.OpenFile(s.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, exit, err := s.reaper.start(s.argv, s.env, out)
	s.pid = pid
	return exit, err
}

func (s *supervised) isHeld() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// hold stops the daemon and keeps it down until release.
func (s *supervised) hold() error {
	s.mu.Lock()
	s.held, s.paused = true, false
	s.mu.Unlock()
	s.signal(syscall.SIGCONT) // a paused one would not end
	s.signal(syscall.SIGTERM)
	for waited := time.Duration(0); s.state() == "running"; waited += 20 * time.Millisecond {
		if waited == 3*time.Second {
			s.signal(syscall.SIGKILL)
		}
		if waited > 6*time.Second {
			return fmt.Errorf("%s does not end", s.name)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// signal sends sig to the daemon; without one running it does nothing. The pid is this process's
// own unreaped child or a child that has just been reaped and not been replaced, never another
// process's.
func (s *supervised) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pid != 0 {
		syscall.Kill(s.pid, sig)
	}
}

func (s *supervised) release() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = false
	return nil
}

// pause freezes the daemon or resumes it.
func (s *supervised) pause(paused bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pid == 0 {
		return fmt.Errorf("%s does not run", s.name)
	}
	s.paused = paused
	return syscall.Kill(s.pid,
		map[bool]syscall.Signal{true: syscall.SIGSTOP, false: syscall.SIGCONT}[paused])
}

// state is one word: running, paused, held or down.
func (s *supervised) state() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.pid != 0 && s.paused:
		return "paused"
	case s.pid != 0:
		return "running"
	case s.held:
		return "held"
	}
	return "down"
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "signal " + status.Signal().String()
	}
	return fmt.Sprintf("exit code %d", status.ExitStatus())
}
