// Package cgroup keeps the lab's processes in separate cgroups: to find all of them, recorded or
// not, to stop them all at once, and to remove every group. It supports cgroup v1, hybrid and v2.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Hierarchies are the cgroup file systems of a machine.
type Hierarchies struct {
	// V1 maps a controller (cpu, freezer, ..., name=systemd) to where its hierarchy is mounted.
	V1 map[string]string
	// Unified is where cgroup2 is mounted; on a hybrid machine it has no controllers.
	Unified string
}

// Discover reads the hierarchies of this machine.
func Discover() (Hierarchies, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Hierarchies{}, err
	}
	h := parseMountinfo(string(data))
	if len(h.V1) == 0 && h.Unified == "" {
		return h, errors.New("no cgroup file system is mounted; mount cgroup2 on /sys/fs/cgroup")
	}
	return h, nil
}

// parseMountinfo picks the cgroup mounts out of /proc/self/mountinfo; see proc(5) for its fields.
func parseMountinfo(mountinfo string) Hierarchies {
	h := Hierarchies{V1: map[string]string{}}
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		switch mountPoint := left[4]; right[0] {
		case "cgroup2":
			if h.Unified == "" {
				h.Unified = mountPoint
			}
		case "cgroup":
			for _, option := range strings.Split(right[2], ",") {
				if _, seen := h.V1[option]; !seen && option != "rw" && option != "ro" {
					h.V1[option] = mountPoint
				}
			}
		}
	}
	return h
}

// Missing names the controllers that the lab needs and the machine does not have.
func (h Hierarchies) Missing() []string {
	var missing []string
	if h.IsV2() {
		have := strings.Fields(readString(filepath.Join(h.Unified, "cgroup.controllers")))
		for _, c := range v2Controllers {
			if !slices.Contains(have, c) {
				missing = append(missing, c)
			}
		}
		return missing
	}
	for _, c := range []string{"cpu", "cpuacct", "cpuset", "memory", "pids", "devices", "freezer"} {
		if h.V1[c] == "" {
			missing = append(missing, c)
		}
	}
	return missing
}

// v2Controllers are the controllers that kubelet enables for pods.
var v2Controllers = []string{"cpuset", "cpu", "io", "memory", "pids"}

// Create makes the group path in every hierarchy, ready for kubelet to make groups below it.
func (h Hierarchies) Create(path string) error {
	for _, m := range h.mounts() {
		if err := os.MkdirAll(filepath.Join(m, path), 0o755); err != nil {
			return fmt.Errorf("creating a cgroup: %w", err)
		}
	}
	if m := h.V1["cpuset"]; m != "" {
		return fillCpuset(m, path)
	}
	if h.IsV2() {
		return h.delegate(path)
	}
	return nil
}

// Weigh makes the group path weigh as much as so many processes outside of it that want a CPU,
// where the kernel shares CPUs by group. At first it weighs as much as one, with all pods below it.
func (h Hierarchies) Weigh(path string, processes int) error {
	file, value := filepath.Join(h.V1["cpu"], path, "cpu.shares"), 1024*processes
	if h.IsV2() {
		file, value = filepath.Join(h.Unified, path, "cpu.weight"), 100*processes
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(value)), 0o644); err != nil {
		return fmt.Errorf("setting the weight of the lab's cgroup: %w", err)
	}
	return nil
}

// Compete makes the group path, with the weight of so many processes, and moves the calling process
// into it for the CPU alone: what it computes competes with the other groups beside path.
func (h Hierarchies) Compete(path string, processes int) error {
	if err := h.Create(path); err != nil {
		return err
	}
	if err := h.Weigh(path, processes); err != nil {
		return err
	}
	mount := h.V1["cpu"]
	if h.IsV2() {
		mount = h.Unified
	}
	if err := os.WriteFile(filepath.Join(mount, path, "cgroup.procs"),
		[]byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		return fmt.Errorf("joining the cgroup %s: %w", path, err)
	}
	return nil
}

// mounts are the mount points of all hierarchies, each once: cpu and cpuacct may share one.
func (h Hierarchies) mounts() []string {
	var all []string
	for _, m := range h.V1 {
		all = append(all, m)
	}
	if h.Unified != "" {
		all = append(all, h.Unified)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// fillCpuset copies the cpus and memory nodes down to path: in v1 a new cpuset is empty, and an
// empty one accepts no process.
func fillCpuset(mount, path string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value := []byte(readString(filepath.Join(mount, file)))
		dir := mount
		for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
			dir = filepath.Join(dir, part)
			if strings.TrimSpace(readString(filepath.Join(dir, file))) != "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, file), value, 0o644); err != nil {
				return fmt.Errorf("filling %s: %w", file, err)
			}
		}
	}
	return nil
}

// delegate enables the controllers in every group above path, so that groups in it have them. Path
// itself is not changed: a v2 group with processes must not enable controllers for its subgroups.
func (h Hierarchies) delegate(path string) error {
	dir := h.Unified
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		for _, c := range v2Controllers {
			if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c),
				0o644); err != nil {
				return fmt.Errorf("enabling the controller %s in %s: %w", c, dir, err)
			}
		}
		dir = filepath.Join(dir, part)
	}
	return nil
}

// Processes are the pids in the group path and all groups below it.
func (h Hierarchies) Processes(path string) []int {
	return h.ProcessesIn(filepath.Join(h.tracking(), path))
}

// ProcessesIn are the pids in the group dir (see PodGroup) and all groups below it.
func (h Hierarchies) ProcessesIn(dir string) []int {
	var pids []int
	for _, group := range subtree(dir) {
		for field := range strings.FieldsSeq(readString(filepath.Join(group, "cgroup.procs"))) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// Join moves the calling process into the group path of the tracking hierarchy; its child processes
// start there.
func (h Hierarchies) Join(path string) error {
	file := filepath.Join(h.tracking(), path, "cgroup.procs")
	if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		return fmt.Errorf("joining the lab's cgroup: %w", err)
	}
	return nil
}

// tracking is the hierarchy whose membership determines which processes are the lab's. On v1 it is
// the freezer's, since the processes of a frozen group cannot fork while they are killed.
func (h Hierarchies) tracking() string {
	if h.IsV2() {
		return h.Unified
	}
	return h.V1["freezer"]
}

// IsV2 reports whether cgroup v2 governs the machine.
func (h Hierarchies) IsV2() bool {
	return len(h.V1) == 0
}

// subtree is a group and all groups below it, parents first; empty if there is no such group.
func subtree(root string) []string {
	var groups []string
	filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			groups = append(groups, path)
		}
		return nil // a group that vanished meanwhile is no error
	})
	return groups
}

func readString(path string) string {
	data, _ := os.ReadFile(path)
	return string(data)
}
