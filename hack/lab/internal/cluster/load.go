package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/redquake/redquake/hack/lab/internal/files"
	"github.com/redquake/redquake/hack/lab/internal/node"
)

// Load imports docker or OCI archives into every node, whether or not they were before.
func (l *Lab) Load(archives []string) error {
	for _, a := range archives {
		if _, err := os.Stat(a); err != nil {
			return fmt.Errorf("no image archive: %w", err)
		}
	}
	return l.onAllNodes(func(n node.Host) error {
		if _, err := n.Init(); err != nil {
			return fmt.Errorf("%s is off; switch it on with: hack/lab/lab up", n.Node.Name)
		}
		for _, a := range archives {
			if err := l.importInto(n, a); err != nil {
				return err
			}
		}
		return nil
	})
}

// loadBase imports archives into the nodes that have not had them.
func (l *Lab) loadBase(archives []string) error {
	return l.onAllNodes(func(n node.Host) error {
		for _, a := range archives {
			info, err := os.Stat(a)
			if err != nil {
				return err
			}
			marker := filepath.Join(l.State.NodeDir(n.Node.Name), "loaded", filepath.Base(a))
			version := fmt.Sprintln(info.Size(), info.ModTime().UnixNano())
			if have, _ := os.ReadFile(marker); string(have) == version {
				continue
			}
			if err := l.importInto(n, a); err != nil {
				return err
			}
			if err := files.WriteAtomic(marker, []byte(version), 0o644); err != nil {
				return err
			}
		}
		return nil
	})
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

// importInto tries a few times, as a containerd that has just been started refuses for a moment.
func (l *Lab) importInto(n node.Host, archive string) error {
	var problem error
	for range 5 {
		cmd := exec.Command(filepath.Join(l.State.Bin(), "ctr"), "--address", l.State.ContainerdSocket(n.Node.Name),
			"--namespace", "k8s.io", "images", "import", archive)
		out, err := cmd.CombinedOutput()
		if err == nil {
			return nil
		}
		problem = fmt.Errorf("importing %s into %s: %w\n%s", archive, n.Node.Name, err, out)
		time.Sleep(300 * time.Millisecond)
	}
	return problem
}
