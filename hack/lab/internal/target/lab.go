package target

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/redquake/redquake/hack/lab/internal/build"
	"github.com/redquake/redquake/hack/lab/internal/cluster"
	"github.com/redquake/redquake/hack/lab/internal/image"
	"github.com/redquake/redquake/hack/lab/internal/netns"
	"github.com/redquake/redquake/hack/lab/internal/preflight"
	"github.com/redquake/redquake/hack/lab/internal/settings"
)

// Lab is the two-node cluster on this machine.
type Lab struct {
	*cluster.Lab
	Builder build.Builder
	Streams Streams
}

// Up builds what the cache lacks, then boots.
func (l Lab) Up(ctx context.Context) error {
	if err := preflight.Check(l.State); err != nil {
		return err
	}
	if err := l.CheckKubernetes(); err != nil { // before minutes of building
		return err
	}
	bin, err := l.Builder.Binaries(ctx)
	if err != nil {
		return err
	}
	err = l.Change(func() error {
		return l.Lab.Up(ctx, bin, func() ([]string, error) { return l.baseImages(bin) })
	})
	if err != nil {
		return fmt.Errorf(
			"%w\nThe lab is left unchanged for inspection; try again with: hack/lab/lab up; or remove it with: hack/lab/lab down",
			err)
	}
	return nil
}

// baseImages builds the images every node has. Their archives are named by the binaries they hold,
// so that clones of the repository with other binaries do not overwrite each other's.
func (l Lab) baseImages(bin string) ([]string, error) {
	redis, err := image.Redis()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(l.Builder.Cache, "images", filepath.Base(bin))
	var archives []string
	for _, i := range []struct {
		name string
		spec image.Spec
	}{
		{"pause", image.Pause(filepath.Join(bin, "pause"))},
		{"coredns", image.CoreDNS(filepath.Join(bin, "coredns"))},
		{"redis", redis},
	} {
		path := filepath.Join(dir, i.name+".tar")
		if _, err := i.spec.Write(path); err != nil {
			return nil, err
		}
		archives = append(archives, path)
	}
	return archives, nil
}

// Down removes the lab, wherever a failed or killed Up left it.
func (l Lab) Down(context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("taking the lab down needs root: use sudo")
	}
	if err := l.Lab.Down(); err != nil {
		return fmt.Errorf("the lab is not entirely removed: %w", err)
	}
	return nil
}

// Status shows daemons, nodes and pods.
func (l Lab) Status(ctx context.Context) error {
	if !netns.Exists(settings.NetNS) {
		return errors.New("the lab is down; start it with: hack/lab/lab up")
	}
	if problems := l.Lab.Status(ctx, l.Streams.Out); len(problems) > 0 {
		return fmt.Errorf("the lab is not healthy:\n  %s", strings.Join(problems, "\n  "))
	}
	return nil
}

// Load imports archives into both nodes.
func (l Lab) Load(_ context.Context, archives []string) error {
	return l.Lab.Load(archives)
}

// Exec runs argv in the lab's network namespace, with the lab's kubectl first in PATH.
func (l Lab) Exec(argv []string) error {
	for name, value := range map[string]string{
		"PATH":         l.State.Bin() + ":" + os.Getenv("PATH"),
		"KUBECONFIG":   l.State.Kubeconfig("admin"),
		"KUBECACHEDIR": l.State.KubectlCache(),
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	if !netns.Exists(settings.NetNS) {
		return errors.New("the lab is down; start it with: hack/lab/lab up")
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	return netns.Exec(settings.NetNS, program, argv, os.Environ())
}
