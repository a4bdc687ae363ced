package target

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

const kindCluster = "redquake"

// kindConfig has two workers, so that pods can be moved and nodes can fail, as in the lab.
const kindConfig = `kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes:
- role: control-plane
- role: worker
- role: worker
`

// kind is a cluster in Docker containers.
type kind struct{ streams Streams }

func (k kind) Up(ctx context.Context) error {
	if err := k.check(ctx); err != nil {
		return err
	}
	switch there, err := k.exists(ctx); {
	case err != nil:
		return err
	case there:
		return run(ctx, k.streams, "", "kind", "export", "kubeconfig", "--name", kindCluster)
	}
	return run(ctx, k.streams, kindConfig, "kind", "create", "cluster", "--name", kindCluster,
		"--config", "-", "--wait", "120s")
}

func (k kind) exists(ctx context.Context) (bool, error) {
	out, err := exec.CommandContext(ctx, "kind", "get", "clusters", "--quiet").Output()
	if err != nil {
		return false, fmt.Errorf("kind get clusters: %w", err)
	}
	return slices.Contains(strings.Fields(string(out)), kindCluster), nil
}

func (k kind) Down(ctx context.Context) error {
	if err := k.check(ctx); err != nil {
		return err
	}
	return run(ctx, k.streams, "", "kind", "delete", "cluster", "--name", kindCluster)
}

func (k kind) Status(ctx context.Context) error {
	return run(ctx, k.streams, "", "kubectl", "get", "nodes", "--output=wide")
}

func (k kind) Load(ctx context.Context, archives []string) error {
	if err := k.check(ctx); err != nil {
		return err
	}
	for _, a := range archives {
		if err := run(ctx, k.streams, "", "kind", "load", "image-archive", a, "--name",
			kindCluster); err != nil {
			return err
		}
	}
	return nil
}

func (k kind) check(ctx context.Context) error {
	if _, err := exec.LookPath("kind"); err != nil {
		return fmt.Errorf("CLUSTER=kind: %w; install it: go install sigs.k8s.io/kind@latest", err)
	}
	if out, err := exec.CommandContext(ctx, "docker", "info", "--format",
		"{{.ServerVersion}}").CombinedOutput(); err != nil {
		return fmt.Errorf("CLUSTER=kind needs a running Docker: %w: %s", err,
			strings.TrimSpace(string(out)))
	}
	return nil
}

func (k kind) Exec(argv []string) error {
	return become(argv)
}
