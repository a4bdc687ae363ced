package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/redquake/redquake/hack/lab/internal/files"
	"github.com/redquake/redquake/hack/lab/internal/settings"
)

// prepareState makes the state folder, marked as the lab's, and the link that leads to it.
func (l *Lab) prepareState() error {
	if other, err := os.Readlink(settings.Pointer); err == nil && other != l.State.Dir &&
		len(l.Cgroups.Processes(settings.CgroupRoot)) > 1 {
		return fmt.Errorf(
			"a lab with the state folder %s is up, and there is one lab per machine; take it down first: "+
				"REDQUAKE_LAB_DIR=%s hack/lab/lab down", other, other)
	}
	if err := checkOwned(l.State); err != nil {
		return err
	}
	if err := l.CheckKubernetes(); err != nil {
		return err
	}
	if err := files.LinkAtomic(l.State.Dir, settings.Pointer); err != nil {
		return err
	}
	if err := files.WriteAtomic(l.State.Marker(),
		[]byte("state of hack/lab; remove it with: hack/lab/lab down\n"), 0o644); err != nil {
		return err
	}
	if err := files.WriteAtomic(l.State.Kubernetes(), []byte(l.Kubernetes+"\n"), 0o644); err != nil {
		return err
	}
	for _, dir := range []string{
		l.State.Volumes(), filepath.Dir(l.State.Log("x")),
		filepath.Dir(l.State.Record("x")),
	} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// CheckKubernetes refuses the state of a lab with another Kubernetes, whether it is up or not: its
// etcd may hold what an older one cannot read, and its daemons would stay as they are.
func (l *Lab) CheckKubernetes() error {
	if _, err := os.Stat(l.State.Marker()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	data, err := os.ReadFile(l.State.Kubernetes())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// without a record it was booted when there was one version only
	booted := cmp.Or(strings.TrimSpace(string(data)), settings.KubernetesVersion)
	if booted != l.Kubernetes {
		return fmt.Errorf("the lab in %s has Kubernetes %s, and LAB_KUBERNETES wants %s; "+
			"take it down first: hack/lab/lab down", l.State.Dir, booted, l.Kubernetes)
	}
	return nil
}

// createDir makes a folder outside the state folder, with its parents, and first notes which of
// them are new, so that down removes exactly those.
func (l *Lab) createDir(dir string) error {
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil {
			break
		}
		missing = append(missing, d)
	}
	slices.Reverse(missing)
	for _, d := range missing {
		if err := l.note(d); err != nil {
			return err
		}
		if err := os.Mkdir(d, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func (l *Lab) note(dir string) error {
	f, err := os.OpenFile(l.State.CreatedDirs(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, dir)
	return err
}

// removeCreatedDirs removes the noted folders, deepest first. One that is in use by others is not
// empty, and stays.
func (l *Lab) removeCreatedDirs() {
	data, _ := os.ReadFile(l.State.CreatedDirs())
	dirs := strings.Fields(string(data))
	slices.Sort(dirs)
	slices.Reverse(dirs)
	for _, d := range slices.Compact(dirs) {
		unix.Rmdir(d)
	}
}

// removeState deletes the state folder, if it is a lab's.
func (l *Lab) removeState() error {
	if err := checkOwned(l.State); err != nil {
		return nil // never ours
	}
	// deleting through a mount would delete what is mounted
	for _, mount := range mountsBelow(l.State.Dir) {
		if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmounting %s: %w", mount, err)
		}
	}
	if err := os.RemoveAll(l.State.Dir); err != nil {
		return err
	}
	if err := os.Remove(settings.Pointer); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// checkOwned refuses a folder that holds something else: `down` deletes the state folder.
func checkOwned(state settings.State) error {
	entries, err := os.ReadDir(state.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if filepath.Join(state.Dir, e.Name()) == state.Marker() {
			return nil
		}
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filepath.Base(".redquake-lab")) { // an incomplete marker
			return fmt.Errorf("%s is not empty and not a lab's; choose another folder with REDQUAKE_LAB_DIR",
				state.Dir)
		}
	}
	return nil
}

// mountsBelow lists the mount points in dir, deepest first.
func mountsBelow(dir string) []string {
	data, _ := os.ReadFile("/proc/self/mountinfo")
	var mounts []string
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], dir+"/") {
			mounts = append(mounts, f[4])
		}
	}
	slices.Sort(mounts)
	slices.Reverse(mounts)
	return mounts
}
