// Package process recognises processes that the lab started, so that it never signals another one.
//
// A pid alone means nothing: it is used again after its process has ended. A pid with the start
// time the kernel gives it is one process until the next boot, and a recorded process must be in
// the lab's cgroup too, which does not survive a boot.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/redquake/redquake/hack/lab/internal/files"
)

// Identity is one process: its pid and when it started, in clock ticks since boot.
type Identity struct {
	PID   int
	Start uint64
}

// ErrGone means that the process no longer runs.
var ErrGone = errors.New("the process no longer runs")

// Signal sends sig to this very process. The handle is taken before the identity is checked, so the
// pid cannot pass to another process in between.
func (id Identity) Signal(sig syscall.Signal) error {
	p, err := os.FindProcess(id.PID) // holds a pidfd
	if err != nil {
		return ErrGone
	}
	defer p.Release()
	if !id.Alive() {
		return ErrGone
	}
	if err := p.Signal(sig); err != nil {
		if errors.Is(err, os.ErrProcessDone) {
			return ErrGone
		}
		return fmt.Errorf("signalling process %d: %w", id.PID, err)
	}
	return nil
}

// Save records the identity in the file path.
func (id Identity) Save(path string) error {
	return files.WriteAtomic(path, fmt.Appendf(nil, "%d %d\n", id.PID, id.Start), 0o644)
}

// Load reads a recorded identity. A process that has ended, or is outside cgroup, is ErrGone, as is
// a missing record.
func Load(path, cgroup string) (Identity, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return Identity{}, ErrGone
		}
		return Identity{}, err
	}
	var id Identity
	if _, err := fmt.Sscanf(string(data), "%d %d", &id.PID, &id.Start); err != nil {
		return Identity{}, ErrGone // an unreadable record names no process
	}
	if !id.Alive() || !id.InCgroup(cgroup) {
		return Identity{}, ErrGone
	}
	return id, nil
}

// Alive reports whether this very process still runs; a zombie does not.
func (id Identity) Alive() bool {
	now, err := Identify(id.PID)
	return err == nil && now == id
}

// Identify returns the identity of the running process pid, or ErrGone.
func Identify(pid int) (Identity, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Identity{}, ErrGone
	}
	state, start, err := parseStat(stat)
	if err != nil {
		return Identity{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	if state == 'Z' || state == 'X' {
		return Identity{}, ErrGone
	}
	return Identity{PID: pid, Start: start}, nil
}

// parseStat reads the state and the start time out of a /proc/PID/stat line. The name, in
// parentheses, may hold spaces and parentheses itself, so fields are counted from the last one.
func parseStat(stat []byte) (state byte, start uint64, err error) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, 0, fmt.Errorf("no process name in %q", stat)
	}
	fields := strings.Fields(string(stat[end+1:]))
	const stateField, startField = 0, 19 // fields 3 and 22 of proc(5)
	if len(fields) <= startField {
		return 0, 0, fmt.Errorf("only %d fields after the name in %q", len(fields), stat)
	}
	start, err = strconv.ParseUint(fields[startField], 10, 64)
	return fields[stateField][0], start, err
}

// InCgroup reports whether the process is in the cgroup path, or below it, in any hierarchy.
func (id Identity) InCgroup(path string) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", id.PID))
	return err == nil && inCgroup(string(data), path)
}

func inCgroup(procCgroup, path string) bool {
	for line := range strings.Lines(procCgroup) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && (parts[2] == path || strings.HasPrefix(parts[2], path+"/")) {
			return true
		}
	}
	return false
}
