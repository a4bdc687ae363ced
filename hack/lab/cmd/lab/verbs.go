package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/redquake/redquake/hack/lab/internal/build"
	"github.com/redquake/redquake/hack/lab/internal/cluster"
	"github.com/redquake/redquake/hack/lab/internal/node"
	"github.com/redquake/redquake/hack/lab/internal/settings"
	"github.com/redquake/redquake/hack/lab/internal/target"
)

var streams = target.Streams{Out: os.Stdout, Err: os.Stderr}

// onlyLab is the lab, for verbs that other clusters cannot do.
func onlyLab() (*cluster.Lab, error) {
	if name := os.Getenv("CLUSTER"); name != "" && name != "lab" {
		return nil, fmt.Errorf(
			"CLUSTER=%s has no nodes that could be reached from here; this verb is for the lab", name)
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("this verb is for the lab and needs root: use sudo")
	}
	return cluster.New(os.Stderr)
}

func up(ctx context.Context) error {
	t, err := chosen()
	if err != nil {
		return err
	}
	return t.Up(ctx)
}

func down(ctx context.Context) error {
	t, err := chosen()
	if err != nil {
		return err
	}
	return t.Down(ctx)
}

func status(ctx context.Context) error {
	t, err := chosen()
	if err != nil {
		return err
	}
	return t.Status(ctx)
}

func load(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: lab load FILE...")
	}
	t, err := chosen()
	if err != nil {
		return err
	}
	return t.Load(ctx, args)
}

func push(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("lab push", flag.ContinueOnError)
	as := flags.String("as", "", "")
	if err := flags.Parse(args); err != nil || flags.NArg() == 0 {
		return errors.New("usage: lab push [--as NAME] FILE...")
	}
	l, err := onlyLab()
	if err != nil {
		return err
	}
	names, err := l.Push(*as, flags.Args())
	for _, name := range names {
		fmt.Println(name)
	}
	return err
}

func execute(_ context.Context, args []string) error {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 || wantsHelp(args) {
		return errors.New("usage: lab exec -- COMMAND...")
	}
	t, err := chosen()
	if err != nil {
		return err
	}
	return t.Exec(args)
}

func kubectl(_ context.Context, args []string) error {
	t, err := chosen()
	if err != nil {
		return err
	}
	return t.Exec(append([]string{"kubectl"}, args...))
}

// chosen is the cluster that CLUSTER names.
func chosen() (target.Target, error) {
	return target.FromEnv(func() (target.Target, error) {
		b, err := builder()
		if err != nil {
			return nil, err
		}
		l, err := cluster.New(os.Stderr)
		return target.Lab{Lab: l, Builder: b, Streams: streams}, err
	}, streams)
}

func buildBinaries(ctx context.Context) error {
	dir, err := binaries(ctx)
	if err == nil {
		fmt.Fprintln(os.Stderr, "all binaries are in", dir)
	}
	return err
}

func assets(ctx context.Context, args []string) error {
	find := binaries
	if slices.Equal(args, []string{"--built"}) {
		find = builtBinaries
	} else if len(args) > 0 {
		return errors.New("usage: lab assets [--built]")
	}
	dir, err := find(ctx)
	if err == nil {
		fmt.Println(dir)
	}
	return err
}

func binaries(ctx context.Context) (string, error) {
	b, err := builder()
	if err != nil {
		return "", err
	}
	return b.Binaries(ctx)
}

func builtBinaries(context.Context) (string, error) {
	b, err := builder()
	if err != nil {
		return "", err
	}
	return b.Built()
}

func builder() (build.Builder, error) {
	source := os.Getenv("REDQUAKE_LAB_SOURCE")
	if source == "" {
		return build.Builder{}, errors.New(
			"REDQUAKE_LAB_SOURCE is not set; start this program through the script hack/lab/lab")
	}
	cache, err := settings.CacheDir()
	return build.Builder{
		Source: source, Cache: cache, Kubernetes: settings.Kubernetes(), Progress: os.Stderr,
	}, err
}

// initNode is how this program becomes PID 1 of a node.
func initNode(args []string) error {
	if len(args) != 1 {
		return errors.New("node-init takes the node's name")
	}
	state, err := settings.StateFromEnv()
	if err != nil {
		return err
	}
	return node.Init(state, args[0])
}
