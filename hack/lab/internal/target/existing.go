package target

import (
	"context"
	"fmt"
	"strings"
)

// existing is the cluster of the current kubeconfig. It belongs to somebody: nothing is created or
// removed in it.
type existing struct{ streams Streams }

func (e existing) Up(ctx context.Context) error {
	if err := run(ctx, e.streams, "", "kubectl", "get", "--raw", "/readyz"); err != nil {
		return fmt.Errorf(
			"the cluster of the current kubeconfig does not answer: %w; choose one with: kubectl config use-context",
			err)
	}
	fmt.Fprintln(e.streams.Err)
	return run(ctx, e.streams, "", "kubectl", "config", "current-context")
}

func (e existing) Down(context.Context) error {
	fmt.Fprintln(e.streams.Err,
		"CLUSTER=existing: the cluster is yours; nothing was created, nothing is removed")
	return nil
}

func (e existing) Status(ctx context.Context) error {
	return run(ctx, e.streams, "", "kubectl", "get", "nodes", "--output=wide")
}

func (e existing) Load(_ context.Context, archives []string) error {
	fmt.Fprintf(e.streams.Err,
		"CLUSTER=existing: images cannot be put on its nodes from here. Push %s to a registry that the cluster pulls from "+
			"(for example: crane push FILE REGISTRY/redquake:TAG) and use that name when deploying.\n",
		strings.Join(archives, " "))
	return nil
}

func (e existing) Exec(argv []string) error {
	return become(argv)
}
