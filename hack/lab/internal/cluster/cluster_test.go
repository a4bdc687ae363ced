package cluster

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redquake/redquake/hack/lab/internal/settings"
)

func testLab(t *testing.T) *Lab {
	t.Helper()
	return &Lab{State: settings.State{Dir: filepath.Join(t.TempDir(), "state")}, Progress: io.Discard}
}

func TestOnlyFoldersOfALabAreOwned(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		owned bool
	}{
		"missing":       {nil, true},
		"a lab's":       {[]string{".redquake-lab", "etcd"}, true},
		"half a marker": {[]string{".redquake-lab.123"}, true},
		"foreign":       {[]string{"photos"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := testLab(t)
			for _, f := range c.files {
				os.MkdirAll(l.State.Dir, 0o755)
				os.WriteFile(filepath.Join(l.State.Dir, f), nil, 0o644)
			}
			if err := checkOwned(l.State); (err == nil) != c.owned {
				t.Errorf("owned %v: %v", c.owned, err)
			}
			if !c.owned {
				l.removeState()
				if _, err := os.Stat(filepath.Join(l.State.Dir, c.files[0])); err != nil {
					t.Errorf("a foreign file was deleted: %v", err)
				}
			}
		})
	}
}

func TestOnlyCreatedFoldersAreRemoved(t *testing.T) {
	l := testLab(t)
	root := t.TempDir()
	os.MkdirAll(l.State.Dir, 0o755)
	os.Mkdir(filepath.Join(root, "there"), 0o755)
	for _, dir := range []string{"there", "there/new/deep", "used"} {
		if err := l.createDir(filepath.Join(root, dir)); err != nil {
			t.Fatal(err)
		}
	}
	os.WriteFile(filepath.Join(root, "used", "file"), nil, 0o644) // others use it now
	l.removeCreatedDirs()
	for dir, want := range map[string]bool{"there": true, "there/new": false, "used": true} {
		if _, err := os.Stat(filepath.Join(root, dir)); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", dir, err == nil, want)
		}
	}
}

func TestStateOfAnotherKubernetesIsRefused(t *testing.T) {
	l := testLab(t)
	l.Kubernetes = "1.35.8"
	if err := l.CheckKubernetes(); err != nil {
		t.Errorf("without a lab: %v", err)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(l.State.Dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(l.State.Marker(), "")
	refused := func(has string) {
		t.Helper()
		err := l.CheckKubernetes()
		if err == nil || !strings.Contains(err.Error(), "has Kubernetes "+has+", and LAB_KUBERNETES wants 1.35.8; take it down") {
			t.Errorf("a lab with %s: %v", has, err)
		}
	}
	refused(settings.KubernetesVersion) // booted before versions were recorded
	write(l.State.Kubernetes(), "1.37.2\n")
	refused("1.37.2")
	write(l.State.Kubernetes(), "1.35.8\n")
	if err := l.CheckKubernetes(); err != nil {
		t.Errorf("the same version: %v", err)
	}
}

func TestNetworkCommands(t *testing.T) {
	first, again := networkCommands(false), networkCommands(true)
	if !strings.Contains(first, "link add cni0") || strings.Contains(again, "link add") {
		t.Error("the bridge must be added once")
	}
	for _, want := range []string{"address replace 198.18.0.12/16 dev cni0", "route replace default dev cni0"} {
		if !strings.Contains(again, want) {
			t.Errorf("no %q in %s", want, again)
		}
	}
}

func TestReserve(t *testing.T) {
	if got, err := reserve("MemTotal:       25165824 kB\nMemFree: 1 kB\n"); err != nil || got != "12288Mi" {
		t.Errorf("got %s, %v; want half of 24 GiB", got, err)
	}
	if _, err := reserve(""); err == nil {
		t.Error("no error without MemTotal")
	}
}
