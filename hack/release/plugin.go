package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// installPlugin has krew install the archive of every platform by the manifest that users get, and
// calls the plugin of this one.
func (r *release) installPlugin() error {
	installed := 0
	for _, a := range r.built {
		if a.Type != archive {
			continue
		}
		if err := r.installFor(a); err != nil {
			return fmt.Errorf("%s/%s: %w", a.OS, a.Architecture, err)
		}
		installed++
	}
	if installed == 0 {
		return fmt.Errorf("there is no archive")
	}
	return nil
}

func (r *release) installFor(a artifact) error {
	root, err := os.MkdirTemp("", "krew")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(root) }()
	krew := exec.Command("krew", "install", "--manifest", r.asset("redquake.yaml"),
		"--archive", r.asset(filepath.Base(a.Path)))
	krew.Env = append(os.Environ(), "KREW_ROOT="+root, "KREW_OS="+a.OS, "KREW_ARCH="+a.Architecture,
		"KREW_NO_UPGRADE_CHECK=1")
	if said, err := krew.CombinedOutput(); err != nil {
		return fmt.Errorf("krew install: %w\n%s", err, said)
	}
	name := "kubectl-redquake"
	if a.OS == "windows" {
		name += ".exe"
	}
	plugin := filepath.Join(root, "bin", name)
	if _, err := os.Stat(plugin); err != nil {
		return err
	}
	if a.OS != runtime.GOOS || a.Architecture != runtime.GOARCH {
		return nil
	}
	for argument, want := range map[string]string{
		"--version": "redquake " + r.Version + " (",
		"--help":    "kubectl redquake [command]",
	} {
		said, err := output(plugin, argument)
		if err != nil {
			return err
		}
		if !strings.Contains(said, want) {
			return fmt.Errorf("%s %s prints\n%s\nwithout %q", name, argument, said, want)
		}
	}
	return nil
}
