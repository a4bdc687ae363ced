package bottleneck

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Recorded from real machines, reduced to the relevant lines.
const (
	hostV1      = "12:memory:/user.slice\n4:cpu,cpuacct:/user.slice\n1:name=systemd:/user.slice/user-0.slice\n0::/user.slice/user-0.slice\n"
	hostV1Mount = "23 1 254:0 / / rw - ext4 /dev/vda rw\n" +
		"30 23 0:26 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n" +
		"33 23 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:12 - cgroup cgroup rw,cpu,cpuacct\n"
	dockerV1      = "5:cpuset:/docker/f00\n3:cpu,cpuacct:/docker/f00\n0::/system.slice/containerd.service\n"
	dockerV1Mount = "800 790 0:29 /docker/f00 /sys/fs/cgroup/cpu,cpuacct ro,nosuid master:12 - cgroup cgroup rw,cpu,cpuacct\n"
	podV2         = "0::/\n"
	podV2Mount    = "1203 1199 0:27 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw\n"
	hostV2        = "0::/kubepods.slice/kubepods-burstable.slice/cri-containerd-f00.scope\n"
	hostV2Mount   = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
	// A mount from another cgroup namespace has paths outside of the own one.
	strayV1      = "3:cpu:/\n"
	strayV1Mount = "800 790 0:29 /kubepods/pod1/f00 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
)

func TestFindCgroups(t *testing.T) {
	for _, c := range []struct {
		name, cgroup, mountinfo string
		want                    cgroups
	}{
		{
			"v1 on a host that has both",
			hostV1,
			hostV1Mount,
			cgroups{dirs: []string{"/sys/fs/cgroup/cpu,cpuacct/user.slice", "/sys/fs/cgroup/cpu,cpuacct"}},
		},
		{"v1 in a container", dockerV1, dockerV1Mount, cgroups{dirs: []string{"/sys/fs/cgroup/cpu,cpuacct"}}},
		{"v1 through another namespace", strayV1, strayV1Mount, cgroups{dirs: []string{"/sys/fs/cgroup/cpu"}}},
		{"v2 in a pod", podV2, podV2Mount, cgroups{v2: true, dirs: []string{"/sys/fs/cgroup"}}},
		{"v2 on a host", hostV2, hostV2Mount, cgroups{v2: true, dirs: []string{
			"/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/cri-containerd-f00.scope",
			"/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice", "/sys/fs/cgroup/kubepods.slice", "/sys/fs/cgroup",
		}}},
		{"nothing mounted", podV2, "", cgroups{}},
		{"strange", "x\n::\n", "a - cgroup\n - \n\n", cgroups{}},
	} {
		if diff := cmp.Diff(c.want, findCgroups(c.cgroup, c.mountinfo), cmp.AllowUnexported(cgroups{}),
			cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}

func TestCgroupLimit(t *testing.T) {
	files := func(list map[string]string) string {
		dir := t.TempDir()
		for name, text := range list {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	v1 := files(map[string]string{
		"cpu.cfs_quota_us": "10000\n", "cpu.cfs_period_us": "100000\n",
		"cpu.stat": "nr_periods 216\nnr_throttled 90\nthrottled_time 8734562310\nnr_bursts 0\nburst_time 0\n",
	})
	free := files(map[string]string{
		"cpu.cfs_quota_us":  "-1\n",
		"cpu.cfs_period_us": "100000\n",
		"cpu.stat":          "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
	})
	v2 := files(map[string]string{
		"cpu.max":      "50000 100000\n",
		"cpu.stat":     "usage_usec 5000000\nuser_usec 1\nsystem_usec 1\nnr_periods 11\nnr_throttled 3\nthrottled_usec 1250000\n",
		"own/cpu.max":  "200000 100000\n",
		"own/cpu.stat": "usage_usec 1\nthrottled_usec 7\n",
		"max/cpu.max":  "max 100000\n",
	})
	for _, c := range []struct {
		name             string
		groups           cgroups
		limit, throttled float64
	}{
		{"v1", cgroups{dirs: []string{v1}}, 0.1, 8.73456231},
		{"v1 without a limit", cgroups{dirs: []string{free}}, 0, 0},
		{"v1, the limit is that of a parent", cgroups{dirs: []string{free, v1}}, 0.1, 8.73456231},
		{
			"v2, the lower limit is that of a parent",
			cgroups{v2: true, dirs: []string{filepath.Join(v2, "own"), v2}},
			0.5,
			1.25,
		},
		{"v2, own limit", cgroups{v2: true, dirs: []string{filepath.Join(v2, "own")}}, 2, 7e-6},
		{"v2 without a limit", cgroups{v2: true, dirs: []string{filepath.Join(v2, "max")}}, 0, 0},
		{"not readable", cgroups{v2: true, dirs: []string{filepath.Join(v2, "gone")}}, 0, 0},
	} {
		if limit, throttled := c.groups.read(); limit != c.limit || throttled != c.throttled {
			t.Errorf("%s: %v cores, throttled %v s; want %v and %v", c.name, limit, throttled, c.limit, c.throttled)
		}
	}
}
