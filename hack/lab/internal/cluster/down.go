package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/redquake/redquake/hack/lab/internal/netns"
	"github.com/redquake/redquake/hack/lab/internal/settings"
)

// Down ends the lab and removes all of it, in whatever state it is. It needs no record of what was
// started: all of the lab's processes are in its cgroup, and all its mounts and addresses in
// namespaces that end with them.
func (l *Lab) Down() error {
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := l.Cgroups.Kill(settings.CgroupRoot); err != nil {
		return err // do not remove what running processes use
	}
	problem := errors.Join(
		detachLoopDevices(l.State.Volumes()),
		l.Cgroups.Remove(settings.CgroupRoot),
	)
	l.warnOccupants()
	problem = errors.Join(problem, netns.Remove(settings.NetNS))
	l.removeCreatedDirs()
	return errors.Join(problem, l.removeState())
}

// detachLoopDevices frees those whose file is in dir. Normally the kernel has done so with the last
// unmount.
func detachLoopDevices(dir string) error {
	backing, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	var problem error
	for _, path := range backing {
		file, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(file), dir+"/") {
			continue
		}
		device := "/dev/" + filepath.Base(filepath.Dir(filepath.Dir(path)))
		if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
			problem = errors.Join(problem, fmt.Errorf("detaching %s: %w: %s", device, err, out))
		}
	}
	return problem
}

// warnOccupants names processes that others started in the lab's network, as with `lab exec`: they
// are not the lab's to end, and keep the namespace alive until they do.
func (l *Lab) warnOccupants() {
	for _, pid := range netns.Occupants(settings.NetNS) {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		fmt.Fprintf(l.Progress,
			"process %d (%s) is still in the lab's network namespace; it was not started by the lab and continues\n",
			pid, strings.TrimSpace(string(name)))
	}
}
