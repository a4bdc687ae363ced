package cluster

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/redquake/redquake/hack/lab/internal/config"
	"github.com/redquake/redquake/hack/lab/internal/files"
	"github.com/redquake/redquake/hack/lab/internal/node"
	"github.com/redquake/redquake/hack/lab/internal/registry"
)

// Push puts the images of docker or OCI archives into the registry, from which a node pulls one
// when a pod needs it, and returns their names. as, unless empty, is the name of the only image.
func (l *Lab) Push(as string, archives []string) ([]string, error) {
	if !l.alive(config.Registry) {
		return nil, errors.New("the lab's registry is down; start it with: hack/lab/lab up")
	}
	return registry.Store{Dir: l.State.Images()}.Add(as, archives...)
}

// Load pushes, and has every node pull the images at once: what a node had under the same name is
// then used for no new container.
func (l *Lab) Load(archives []string) error {
	for _, n := range l.nodes() {
		if _, err := n.Init(); err != nil {
			return fmt.Errorf("%s is off; switch it on with: hack/lab/lab up", n.Node.Name)
		}
	}
	names, err := l.Push("", archives)
	if err != nil {
		return err
	}
	return l.onAllNodes(func(n node.Host) error {
		for _, name := range names {
			if err := l.pull(n, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// loadBase loads the archives of which the nodes do not have this version.
func (l *Lab) loadBase(archives []string) error {
	versions := map[string]string{} // of those
	for _, a := range archives {
		info, err := os.Stat(a)
		if err != nil {
			return err
		}
		version := fmt.Sprintln(info.Size(), info.ModTime().UnixNano())
		if have, _ := os.ReadFile(l.State.Loaded(a)); string(have) != version {
			versions[a] = version
		}
	}
	if len(versions) == 0 {
		return nil
	}
	if err := l.Load(slices.Sorted(maps.Keys(versions))); err != nil {
		return err
	}
	for a, version := range versions {
		if err := files.WriteAtomic(l.State.Loaded(a), []byte(version), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) onAllNodes(f func(node.Host) error) error {
	nodes := l.nodes()
	results := make(chan error, len(nodes))
	for _, n := range nodes {
		go func() { results <- f(n) }()
	}
	var problem error
	for range nodes {
		problem = errors.Join(problem, <-results)
	}
	return problem
}

// pull tries a few times, as a containerd or a registry that has just been started refuses for a
// moment.
func (l *Lab) pull(n node.Host, image string) error {
	var problem error
	for range 5 {
		cmd := exec.Command(filepath.Join(l.State.Bin(), "ctr"), "--address",
			l.State.ContainerdSocket(n.Node.Name),
			"--namespace", "k8s.io", "images", "pull", "--hosts-dir", config.HostsDir(l.State, n.Node.Name),
			image)
		out, err := cmd.CombinedOutput()
		if err == nil {
			return nil
		}
		problem = fmt.Errorf("pulling %s into %s: %w\n%s", image, n.Node.Name, err, out)
		time.Sleep(300 * time.Millisecond)
	}
	return problem
}
