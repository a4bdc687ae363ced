package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Freeze freezes or resumes every process in the group dir (see PodGroup), and waits until the
// state has changed.
func (h Hierarchies) Freeze(dir string, frozen bool) error {
	if err := h.setFrozen(dir, frozen); err != nil {
		return err
	}
	deadline := time.Now().Add(10 * time.Second)
	for h.isFrozen(dir) != frozen {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not become frozen=%v within 10 s", dir, frozen)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

func (h Hierarchies) isFrozen(dir string) bool {
	if h.IsV2() {
		return strings.Contains(readString(filepath.Join(dir, "cgroup.events")), "frozen 1")
	}
	return strings.TrimSpace(readString(filepath.Join(dir, "freezer.state"))) == "FROZEN"
}

// Kill ends every process in the group path and below, and waits until they have ended. On v1 the
// group is frozen first, so that nothing forks and no pid is reused before it is signalled.
func (h Hierarchies) Kill(path string) error {
	root := filepath.Join(h.tracking(), path)
	deadline := time.Now().Add(20 * time.Second)
	for {
		pids := h.Processes(path)
		if len(pids) == 0 {
			return nil
		}
		if slices.Contains(pids, os.Getpid()) {
			return fmt.Errorf("this command runs inside the lab's cgroup %s; run it from outside", path)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v in the cgroup %s do not die (waiting for a disk?)", pids, path)
		}
		if h.IsV2() {
			if err := os.WriteFile(filepath.Join(root, "cgroup.kill"), []byte("1"), 0o644); err != nil {
				return fmt.Errorf("killing the lab's cgroup (cgroup.kill needs Linux 5.14): %w", err)
			}
		} else {
			h.setFrozen(root, true)
			for _, pid := range h.Processes(path) {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		h.Thaw(path)
		time.Sleep(20 * time.Millisecond)
	}
}

// Thaw resumes every process below path, whatever froze it: a frozen process cannot be killed on
// v1.
func (h Hierarchies) Thaw(path string) {
	for _, group := range subtree(filepath.Join(h.tracking(), path)) {
		h.setFrozen(group, false) // the root group of a hierarchy has no such file
	}
}

func (h Hierarchies) setFrozen(dir string, frozen bool) error {
	file := filepath.Join(dir, "freezer.state")
	value := map[bool]string{true: "FROZEN", false: "THAWED"}[frozen]
	if h.IsV2() {
		file = filepath.Join(dir, "cgroup.freeze")
		value = map[bool]string{true: "1", false: "0"}[frozen]
	}
	return os.WriteFile(file, []byte(value), 0o644)
}

// Remove deletes the group path and all groups below it from every hierarchy.
func (h Hierarchies) Remove(path string) error {
	deadline := time.Now().Add(5 * time.Second)
	for {
		var left []string
		for _, m := range h.mounts() {
			groups := subtree(filepath.Join(m, path))
			slices.Reverse(groups)
			for _, group := range groups {
				if err := syscall.Rmdir(group); err != nil && err != syscall.ENOENT {
					left = append(left, group)
				}
			}
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("cgroups that cannot be removed: %s", strings.Join(left, ", "))
		}
		time.Sleep(50 * time.Millisecond) // a group is busy for a moment after its last process has ended
	}
}

// PodGroup returns the group of a pod below the node's group, in the hierarchy that can freeze it.
func (h Hierarchies) PodGroup(nodeGroup, podUID string) (string, error) {
	for _, class := range []string{"", "burstable", "besteffort"} {
		dir := filepath.Join(h.tracking(), nodeGroup, "kubepods", class, "pod"+podUID)
		if _, err := os.Stat(dir); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no cgroup of the pod %s below %s; is it running?", podUID, nodeGroup)
}
