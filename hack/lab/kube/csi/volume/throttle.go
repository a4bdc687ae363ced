package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// throttleEvery is how often a pod is looked for containers that are not throttled yet.
const throttleEvery = 500 * time.Millisecond

// Throttle lets the containers of the pod that a volume is published for write to it with so many
// operations per second, until it is unmounted. In cgroup v1 a limit is of one group alone, and in
// either version each container has its own: they appear after the volume.
func Throttle(target, iops string) {
	var device unix.Stat_t
	if err := unix.Stat(target, &device); err != nil {
		log.Printf("throttling %s: %v", target, err)
		return
	}
	number := fmt.Sprintf("%d:%d", unix.Major(device.Dev), unix.Minor(device.Dev))
	pod := podOf(target)
	for done := map[string]bool{}; Mounted(target); time.Sleep(throttleEvery) {
		for group, file := range groupsOf("/sys/fs/cgroup", pod) {
			if done[group] {
				continue
			}
			limit := number + " " + iops
			if file == ioMax {
				limit = number + " wiops=" + iops
			}
			if err := os.WriteFile(filepath.Join(group, file), []byte(limit), 0o644); err != nil {
				if !errors.Is(err, fs.ErrNotExist) { // the container has ended meanwhile
					log.Printf("throttling %s: %v", target, err)
				}
				continue
			}
			done[group] = true
			log.Printf("throttled %s to %s writes per second in %s", target, iops, group)
		}
	}
}

// podOf is the UID of the pod that a volume is published for: kubelet's path is
// .../pods/UID/volumes/...
func podOf(target string) string {
	_, after, _ := strings.Cut(target, "/pods/")
	uid, _, _ := strings.Cut(after, "/")
	return uid
}

// The files of a cgroup that limit its disk writes, by version.
const (
	writeIOPS = "blkio.throttle.write_iops_device"
	ioMax     = "io.max"
)

// groupsOf lists the cgroups of a pod and of its containers below root that can limit writes, with
// the file that does.
func groupsOf(root, pod string) map[string]string {
	found := map[string]string{}
	if pod == "" {
		return found
	}
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil // a group that ended meanwhile
		}
		if strings.Contains(path, "pod"+pod) ||
			strings.Contains(path, "pod"+strings.ReplaceAll(pod, "-", "_")) {
			for _, file := range []string{writeIOPS, ioMax} {
				if _, err := os.Stat(filepath.Join(path, file)); err == nil {
					found[path] = file
				}
			}
		}
		return nil
	})
	return found
}
