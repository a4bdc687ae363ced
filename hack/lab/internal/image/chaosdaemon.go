package image

import (
	"fmt"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// ChaosDaemon is an image of Chaos Mesh's agent: its program, what that calls of this machine's
// packages, and the static program nsexec, which is also pause. What it calls for faults of volumes
// and memory is not in it.
func ChaosDaemon(program, nsexec, tag string) (Spec, error) {
	if err := requireStatic(nsexec, "build it with CGO_ENABLED=0"); err != nil {
		return Spec{}, err
	}
	tools, err := busybox()
	if err != nil {
		return Spec{}, err
	}
	loaded, err := libraries(program)
	if err != nil {
		return Spec{}, err
	}
	files := merge(base("nonroot", 65532), tools, loaded, Files{
		"/run":                        {Dir: true}, // of the lock of iptables
		"/usr/local/bin/chaos-daemon": {Source: program},
		"/usr/local/bin/nsexec":       {Source: nsexec},
		"/usr/local/bin/pause":        {Source: nsexec},
		"/usr/bin/iptables":           {Link: "iptables-legacy"}, // as in the official image
	})
	for _, name := range []string{"iptables-legacy", "ipset", "ip", "tc", "stress-ng"} {
		found, err := withLibraries(name)
		if err != nil {
			return Spec{}, fmt.Errorf(
				"%w; install it: apt-get install iptables ipset iproute2 stress-ng", err)
		}
		files = merge(files, found)
	}
	// Matches and targets of rules are libraries that iptables loads by name.
	folders, err := filepath.Glob("/usr/lib/*/xtables")
	if err != nil {
		return Spec{}, err
	}
	for _, path := range folders {
		extensions, err := folder(path)
		if err != nil {
			return Spec{}, err
		}
		files = merge(files, extensions)
	}
	return Spec{
		Tags:   []string{tag},
		Files:  files,
		Config: v1.Config{Entrypoint: []string{"/usr/local/bin/chaos-daemon"}, Env: []string{searchPath}},
	}, nil
}
