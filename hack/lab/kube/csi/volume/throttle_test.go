package volume

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

func TestPodOfAVolume(t *testing.T) {
	if got := podOf("/run/lab/node-a/kubelet/pods/1b-2c/volumes/kubernetes.io~csi/pvc-1/mount"); got != "1b-2c" {
		t.Errorf("pod %q", got)
	}
	if got := podOf("/mnt"); got != "" {
		t.Errorf("pod %q of a volume that is no pod's", got)
	}
}

// Groups are the pod's and its containers', by cgroupfs and by systemd, and no other pod's.
func TestGroupsOfAPod(t *testing.T) {
	root := t.TempDir()
	want := map[string]string{}
	for _, g := range []struct {
		path, file string
		of         bool
	}{
		{"blkio/lab/kubepods/pod1b-2c", writeIOPS, true},
		{"blkio/lab/kubepods/pod1b-2c/c1", writeIOPS, true},
		{"blkio/lab/kubepods/pod3d", writeIOPS, false},
		{"memory/lab/kubepods/pod1b-2c", "memory.limit_in_bytes", false},
		{"kubepods.slice/kubepods-pod1b_2c.slice/cri-c1.scope", ioMax, true},
	} {
		path := filepath.Join(root, g.path)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, g.file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if g.of {
			want[path] = g.file
		}
	}
	if got := groupsOf(root, "1b-2c"); !maps.Equal(got, want) {
		t.Errorf("groups %v, want %v", got, want)
	}
	if got := groupsOf(root, ""); len(got) > 0 {
		t.Errorf("groups %v of no pod", got)
	}
}
