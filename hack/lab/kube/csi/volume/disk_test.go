package volume

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDirVolume(t *testing.T) {
	d := Disk{Dir: t.TempDir()}
	for range 2 { // creating it again keeps it
		if err := d.Create("pvc-1", backendDir, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(d.Dir, "pvc-1"))
	if err != nil || info.Mode().Perm() != 0o777 {
		t.Fatalf("volume %v, %v; want a folder that anybody may write", info, err)
	}
	if err := d.Remove("pvc-1"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.path("pvc-1", backendDir)); !os.IsNotExist(err) {
		t.Error("the volume is still there")
	}
	if err := d.Remove("pvc-1"); err != nil {
		t.Errorf("removing it again: %v", err)
	}
}

func TestHandleStaysInTheFolder(t *testing.T) {
	d := Disk{Dir: "/data"}
	if got := d.path("../../etc/passwd", backendDir); got != "/data/passwd" {
		t.Errorf("path %s leaves the folder", got)
	}
}

func TestIsMountPoint(t *testing.T) {
	const mountinfo = "36 35 98:0 /pvc-1 /var/lib/kubelet/pods/x/mount rw - ext4 /dev/vda rw\n"
	if !isMountPoint(mountinfo, "/var/lib/kubelet/pods/x/mount") || isMountPoint(mountinfo, "/var/lib/kubelet/pods/x") {
		t.Error("mount point not recognised, or a parent taken for one")
	}
}
