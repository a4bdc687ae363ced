package bottleneck

import (
	"math"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// cgroups are the groups whose CPU limit applies to a process: its own, and its ancestors as far as
// they are mounted.
type cgroups struct {
	v2   bool
	dirs []string
}

// findCgroups finds the cgroup directories of a process from its /proc/PID/cgroup and mountinfo. On
// a machine with both versions, cgroup v1 limits the CPU if it has the controller. The result is
// empty if no cgroup file system is mounted.
func findCgroups(cgroup, mountinfo string) cgroups {
	v1, unified := memberships(cgroup)
	mounts := cgroupMounts(mountinfo)
	if group, ok := v1["cpu"]; ok {
		for _, m := range mounts {
			if m.kind == "cgroup" && contains(m.options, "cpu") {
				return cgroups{dirs: upwards(m.point, m.root, group)}
			}
		}
	}
	for _, m := range mounts {
		if m.kind == "cgroup2" && unified != "" {
			return cgroups{v2: true, dirs: upwards(m.point, m.root, unified)}
		}
	}
	return cgroups{}
}

// mount is a mounted cgroup file system. options are the controllers of a v1 mount.
type mount struct{ point, root, kind, options string }

// cgroupMounts reads the cgroup mounts in /proc/PID/mountinfo.
func cgroupMounts(mountinfo string) []mount {
	var mounts []mount
	for line := range strings.Lines(mountinfo) {
		before, after, _ := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if len(left) >= 5 && len(right) >= 3 && strings.HasPrefix(right[0], "cgroup") {
			mounts = append(mounts, mount{
				point:   left[4],
				root:    left[3],
				kind:    right[0],
				options: right[2],
			})
		}
	}
	return mounts
}

// memberships reads /proc/PID/cgroup: the group of each v1 controller, and the group of v2.
func memberships(cgroup string) (v1 map[string]string, unified string) {
	v1 = map[string]string{}
	for line := range strings.Lines(cgroup) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) != 3:
		case parts[0] == "0" && parts[1] == "":
			unified = parts[2]
		default:
			for controller := range strings.SplitSeq(parts[1], ",") {
				v1[controller] = parts[2]
			}
		}
	}
	return v1, unified
}

func contains(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// upwards lists the directories of a group and its ancestors. The root of a container's mount is
// the container's own group.
func upwards(mountPoint, root, group string) []string {
	below := strings.TrimPrefix(group, strings.TrimSuffix(root, "/"))
	if root != "/" && below == group { // the path is of another cgroup namespace than the mount
		below = "/"
	}
	var dirs []string
	for below = path.Clean("/" + below); ; below = path.Dir(below) {
		dirs = append(dirs, filepath.Join(mountPoint, below))
		if below == "/" {
			return dirs
		}
	}
}

// read returns the lowest limit in cores, 0 = none, and for how long the group was throttled by it,
// in seconds. A file that cannot be read counts as no limit.
func (c cgroups) read() (limit, throttled float64) {
	for _, dir := range c.dirs {
		own := c.limit(dir)
		if own == 0 || (limit > 0 && own >= limit) {
			continue
		}
		limit, throttled = own, throttledSeconds(readFile(dir, "cpu.stat"))
	}
	return limit, throttled
}

func (c cgroups) limit(dir string) float64 {
	if c.v2 {
		return limitV2(readFile(dir, "cpu.max"))
	}
	return limitV1(readFile(dir, "cpu.cfs_quota_us"), readFile(dir, "cpu.cfs_period_us"))
}

// limitV2 reads cpu.max: the quota or "max", and the period.
func limitV2(text string) float64 {
	words := strings.Fields(text)
	if len(words) != 2 {
		return 0
	}
	return limitV1(words[0], words[1])
}

// limitV1 is quota / period in cores; 0 = no limit, which is -1 in v1.
func limitV1(quota, period string) float64 {
	q, errQuota := strconv.ParseFloat(strings.TrimSpace(quota), 64)
	p, errPeriod := strconv.ParseFloat(strings.TrimSpace(period), 64)
	if errQuota != nil || errPeriod != nil || q <= 0 || p <= 0 || math.IsInf(q, 0) {
		return 0
	}
	return q / p
}

// throttledSeconds reads cpu.stat: throttled_time in nanoseconds of v1, throttled_usec of v2.
func throttledSeconds(stat string) float64 {
	for line := range strings.Lines(stat) {
		words := strings.Fields(line)
		if len(words) != 2 {
			continue
		}
		n, _ := strconv.ParseFloat(words[1], 64)
		switch words[0] {
		case "throttled_time":
			return n / 1e9
		case "throttled_usec":
			return n / 1e6
		}
	}
	return 0
}
