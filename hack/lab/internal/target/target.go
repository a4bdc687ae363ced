// Package target is the choice of cluster: the lab, kind, or whatever the current kubeconfig leads
// to.
package target

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Target is a cluster that tests run against.
type Target interface {
	// Up makes the cluster ready, or finds that it is.
	Up(ctx context.Context) error
	// Down removes what Up made.
	Down(ctx context.Context) error
	// Status writes how the cluster is; the error states why it is not healthy.
	Status(ctx context.Context) error
	// Load brings image archives onto the cluster's nodes.
	Load(ctx context.Context, archives []string) error
	// Exec becomes the command argv, with the cluster's API server, kubectl and pods in reach. It
	// returns only errors.
	Exec(argv []string) error
}

// Streams is where a target reports to.
type Streams struct {
	Out io.Writer // answers
	Err io.Writer // progress
}

// FromEnv returns the target that CLUSTER names; the lab where it can run, if nothing does.
func FromEnv(lab func() (Target, error), streams Streams) (Target, error) {
	name := os.Getenv("CLUSTER")
	if name == "" {
		if runtime.GOOS != "linux" || os.Geteuid() != 0 {
			return nil, fmt.Errorf("which cluster? The lab needs root on Linux (use sudo); " +
				"else set CLUSTER=kind, or CLUSTER=existing for the cluster of the current kubeconfig")
		}
		name = "lab"
	}
	switch name {
	case "lab":
		return lab()
	case "kind":
		return kind{streams}, nil
	case "existing":
		return existing{streams}, nil
	}
	return nil, fmt.Errorf("CLUSTER is %q; it may be lab, kind or existing", name)
}

// become runs argv in place of this process, with the environment as it is.
func become(argv []string) error {
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	return fmt.Errorf("running %s: %w", program, unix.Exec(program, argv, os.Environ()))
}

// run runs a program with its output on the terminal; the error names the whole command.
func run(ctx context.Context, streams Streams, stdin string, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = streams.Out, streams.Err
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	return nil
}
