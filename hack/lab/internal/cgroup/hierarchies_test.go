package cgroup

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const hybrid = `25 20 0:22 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
26 25 0:23 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:4 - cgroup cgroup rw,cpu,cpuacct
27 25 0:24 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer
28 25 0:25 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
29 25 0:26 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`

const v2 = `30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
`

func TestParseMountinfo(t *testing.T) {
	h := parseMountinfo(hybrid)
	want := map[string]string{
		"cpu": "/sys/fs/cgroup/cpu,cpuacct", "cpuacct": "/sys/fs/cgroup/cpu,cpuacct",
		"freezer": "/sys/fs/cgroup/freezer", "name=systemd": "/sys/fs/cgroup/systemd",
	}
	if !maps.Equal(h.V1, want) || h.Unified != "/sys/fs/cgroup/unified" || h.IsV2() {
		t.Errorf("hybrid: %+v", h)
	}
	wantMounts := []string{
		"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/freezer", "/sys/fs/cgroup/systemd",
		"/sys/fs/cgroup/unified",
	}
	if got := h.mounts(); !slices.Equal(got, wantMounts) {
		t.Errorf("mounts %v, want %v", got, wantMounts)
	}
	if got := h.Missing(); !slices.Equal(got, []string{"cpuset", "memory", "pids", "devices"}) {
		t.Errorf("missing %v", got)
	}
	if h := parseMountinfo(v2); !h.IsV2() || h.Unified != "/sys/fs/cgroup" || h.tracking() != "/sys/fs/cgroup" {
		t.Errorf("v2: %+v", h)
	}
}

// A folder tree replaces a hierarchy: the code only reads and writes files.
func TestCreateFillsCpusetFromTheTop(t *testing.T) {
	mount := t.TempDir()
	for file, value := range map[string]string{"cpuset.cpus": "0-1\n", "cpuset.mems": "0\n"} {
		if err := os.WriteFile(filepath.Join(mount, file), []byte(value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h := Hierarchies{V1: map[string]string{"cpuset": mount}}
	if err := h.Create("/lab/node-a"); err != nil {
		t.Fatal(err)
	}
	for _, group := range []string{"lab", "lab/node-a"} {
		if got := readString(filepath.Join(mount, group, "cpuset.cpus")); got != "0-1\n" {
			t.Errorf("%s: cpuset.cpus %q, want 0-1", group, got)
		}
	}
}

func TestWeigh(t *testing.T) {
	for file, h := range map[string]func(mount string) Hierarchies{
		"cpu.shares 3072": func(mount string) Hierarchies { return Hierarchies{V1: map[string]string{"cpu": mount}} },
		"cpu.weight 300":  func(mount string) Hierarchies { return Hierarchies{Unified: mount} },
	} {
		name, want, _ := strings.Cut(file, " ")
		mount := t.TempDir()
		if err := h(mount).Create("/lab"); err != nil {
			t.Fatal(err)
		}
		if err := h(mount).Weigh("/lab", 3); err != nil {
			t.Fatal(err)
		}
		if got := readString(filepath.Join(mount, "lab", name)); got != want {
			t.Errorf("%s: %q, want %s", name, got, want)
		}
	}
}

func TestCompete(t *testing.T) {
	for name, c := range map[string]struct {
		hierarchies func(mount string) Hierarchies
		file, want  string
	}{
		"v1": {func(mount string) Hierarchies {
			return Hierarchies{
				V1: map[string]string{"cpu": mount},
			}
		}, "cpu.shares", "4096"},
		"v2": {func(mount string) Hierarchies { return Hierarchies{Unified: mount} }, "cpu.weight", "400"},
	} {
		mount := t.TempDir()
		if err := c.hierarchies(mount).Compete("/lab/busy", 4); err != nil {
			t.Fatal(err)
		}
		group := filepath.Join(mount, "lab", "busy")
		if got := readString(filepath.Join(group, c.file)); got != c.want {
			t.Errorf("%s: %s is %q, want %s", name, c.file, got, c.want)
		}
		if got := readString(filepath.Join(group, "cgroup.procs")); got != strconv.Itoa(os.Getpid()) {
			t.Errorf("%s: process %q has joined, want this one", name, got)
		}
	}
}

func TestProcessesOfTheWholeTree(t *testing.T) {
	mount := t.TempDir()
	for group, procs := range map[string]string{"lab": "7\n", "lab/a": "3\n5\n", "lab/a/pod": "", "other": "9\n"} {
		os.MkdirAll(filepath.Join(mount, group), 0o755)
		os.WriteFile(filepath.Join(mount, group, "cgroup.procs"), []byte(procs), 0o644)
	}
	h := Hierarchies{V1: map[string]string{"freezer": mount}}
	if got := h.Processes("/lab"); !reflect.DeepEqual(got, []int{3, 5, 7}) {
		t.Errorf("processes %v, want 3 5 7", got)
	}
	if got := h.Processes("/none"); len(got) != 0 {
		t.Errorf("processes of a missing group: %v", got)
	}
}
