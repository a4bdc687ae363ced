package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/redquake/redquake/hack/lab/internal/cluster"
	"github.com/redquake/redquake/hack/lab/internal/config"
	"github.com/redquake/redquake/hack/lab/internal/node"
)

const nodeHelp = `usage: lab node VERB NODE ...

  crash NODE             cut its power: all that runs on it is gone at once, nothing is shut down
  start NODE             switch it on again
  hold NODE [DAEMON]     stop a daemon (kubelet, containerd or csi; default kubelet) and keep it down; pods go on
  release NODE [DAEMON]  undo hold
  pause NODE [DAEMON]    freeze a daemon as it is: it holds its connections and answers nothing; --for 20s undoes it after that time
  resume NODE [DAEMON]   undo pause
  burden NODE --for 20s  compute as much as the machine lets it, for that time, beside the pods of the node
  sh NODE [COMMAND...]   run a command, or a shell, inside the node; images: ctr -n k8s.io images ls

Nodes are node-a and node-b.
`

func nodeVerb(ctx context.Context, args []string) error {
	if len(args) == 0 || wantsHelp(args) {
		fmt.Print(nodeHelp)
		return nil
	}
	if len(args) < 2 {
		return errors.New("usage: lab node VERB NODE ...; see: lab node --help")
	}
	args, length, err := forTime(args)
	if err != nil {
		return err
	}
	l, err := onlyLab()
	if err != nil {
		return err
	}
	n, err := l.Node(args[1])
	if err != nil {
		return err
	}
	switch verb, rest := args[0], args[2:]; verb {
	case "crash":
		return n.Crash()
	case "start":
		return startNode(l, n)
	case node.Hold, node.Release, node.Pause, node.Resume:
		daemon := config.Kubelet
		if len(rest) > 0 {
			daemon = rest[0]
		}
		return passing(ctx, length, func() error {
			return n.Order(verb,
				daemon)
		}, undoing(verb == node.Pause, func() error { return n.Order(node.Resume, daemon) }))
	case "burden":
		return burden(ctx, l, n, length)
	case "sh":
		return enter(l, n, rest)
	default:
		return fmt.Errorf("unknown verb %q; see: lab node --help", verb)
	}
}

// burdenWeight is how many processes the burden of a node weighs as much as: all pods of a node
// weigh as much as one or two.
const burdenWeight = 4

// burden competes with the pods of a node for both CPUs.
func burden(ctx context.Context, l *cluster.Lab, n node.Host, length time.Duration) error {
	if length == 0 {
		return errors.New("usage: lab node burden NODE --for DURATION")
	}
	if err := l.Cgroups.Compete(config.NodeCgroup(n.Node.Name)+"/burden", burdenWeight); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var busy sync.WaitGroup
	for range runtime.NumCPU() {
		busy.Go(func() {
			for ctx.Err() == nil {
			}
		})
	}
	busy.Wait()
	return nil
}

func startNode(l *cluster.Lab, n node.Host) error {
	return l.Change(func() error { return l.StartNode(n) })
}

// enter becomes the command, or a shell, inside the node.
func enter(l *cluster.Lab, n node.Host, argv []string) error {
	if len(argv) > 0 && argv[0] == "--" {
		argv = argv[1:]
	}
	if len(argv) == 0 {
		argv = []string{"/bin/sh"}
	}
	line, err := n.Enter(argv)
	if err != nil {
		return err
	}
	program, err := exec.LookPath(line[0])
	if err != nil {
		return err
	}
	if err := os.Setenv("PATH", l.State.Bin()+":"+os.Getenv("PATH")); err != nil {
		return err
	}
	return fmt.Errorf("running %s: %w", program, unix.Exec(program, line, os.Environ()))
}

func pod(ctx context.Context, args []string) error {
	args, length, err := forTime(args)
	if err != nil {
		return err
	}
	if len(args) != 3 || !slices.Contains([]string{"freeze", "thaw", "kill"}, args[0]) {
		return errors.New("usage: lab pod freeze|thaw|kill NAMESPACE POD [--for DURATION]")
	}
	l, err := onlyLab()
	if err != nil {
		return err
	}
	p, err := l.Pod(ctx, args[1], args[2])
	if err != nil {
		return err
	}
	switch args[0] {
	case "kill":
		return p.Kill()
	case "thaw":
		return p.Freeze(false)
	}
	return passing(ctx, length, func() error { return p.Freeze(true) }, func() error {
		return p.Freeze(false)
	})
}

func daemon(ctx context.Context, args []string) error {
	args, length, err := forTime(args)
	if err != nil {
		return err
	}
	if len(args) != 2 || !slices.Contains([]string{node.Pause, node.Resume}, args[0]) {
		return errors.New("usage: lab daemon pause|resume DAEMON [--for DURATION]")
	}
	l, err := onlyLab()
	if err != nil {
		return err
	}
	pause := args[0] == node.Pause
	return passing(ctx, length, func() error { return l.PauseDaemon(args[1], pause) },
		undoing(pause, func() error { return l.PauseDaemon(args[1], false) }))
}
