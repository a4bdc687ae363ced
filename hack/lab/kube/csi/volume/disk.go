// Package volume keeps the data of the CSI driver's volumes, mounts it and limits how fast it is
// written. It knows nothing of Kubernetes, so that its tests compile without its client.
package volume

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Backends of a volume, as the StorageClass parameter "backend" names them.
const (
	backendDir  = "dir"
	backendLoop = "loop"
)

// Disk is the folder that holds the data of all volumes.
type Disk struct{ Dir string }

// path is the folder of a volume's data. Handles come from the API server; Base keeps an invalid
// one inside the folder.
func (d Disk) path(handle, backend string) string {
	if backend == backendLoop {
		return filepath.Join(d.Dir, filepath.Base(handle)+".img")
	}
	return filepath.Join(d.Dir, filepath.Base(handle))
}

// Create makes an empty volume of size bytes, which only the backend loop enforces; an existing one
// is kept.
func (d Disk) Create(handle, backend string, size int64) error {
	path := d.path(handle, backend)
	if backend != backendLoop {
		if err := os.MkdirAll(path, 0o777); err != nil {
			return err
		}
		return os.Chmod(path, 0o777) // any user may write, whatever the umask: many pods set no fsGroup
	}
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	// The file gets its name when it holds a file system: a killed driver leaves no volume that cannot
	// be mounted.
	tmp := path + ".new"
	f, err := os.Create(tmp)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		return err
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", "-m", "0", tmp).CombinedOutput(); err != nil {
		return fmt.Errorf("making a file system of %d bytes: %w: %s", size, err, out)
	}
	return os.Rename(tmp, path)
}

// Remove deletes a volume of either backend.
func (d Disk) Remove(handle string) error {
	if err := os.RemoveAll(d.path(handle, backendDir)); err != nil {
		return err
	}
	return os.RemoveAll(d.path(handle, backendLoop))
}

// Mount makes a volume appear at target, which must be a folder.
func (d Disk) Mount(handle, backend, target string, readOnly bool) error {
	source := d.path(handle, backend)
	if _, err := os.Stat(source); err != nil {
		return fmt.Errorf("volume %s: %w", handle, err)
	}
	args := []string{"--bind", source, target}
	if backend == backendLoop {
		args = []string{"-o", "loop", source, target}
	}
	if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("mounting %s: %w: %s", source, err, out)
	}
	if !readOnly {
		return nil
	}
	if out, err := exec.Command("mount", "-o", "remount,bind,ro",
		target).CombinedOutput(); err != nil {
		return fmt.Errorf("making %s read-only: %w: %s", target, err, out)
	}
	return nil
}

// Unmount undoes Mount, however often the volume was mounted there.
func Unmount(target string) error {
	for Mounted(target) {
		if out, err := exec.Command("umount", target).CombinedOutput(); err != nil {
			return fmt.Errorf("unmounting %s: %w: %s", target, err, out)
		}
	}
	return nil
}

// Mounted reports whether something is mounted at path.
func Mounted(path string) bool {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	return err == nil && isMountPoint(string(mountinfo), path)
}

func isMountPoint(mountinfo, path string) bool {
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == path {
			return true
		}
	}
	return false
}
