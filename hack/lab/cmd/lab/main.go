// Command lab controls the project's two-node Kubernetes: see `lab help`. Start it through the
// script hack/lab/lab, which builds it and passes the folder of the sources.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/redquake/redquake/hack/lab/internal/node"
	"github.com/redquake/redquake/hack/lab/internal/settings"
)

// verb is a subcommand.
type verb struct {
	name, args, help string
	run              func(ctx context.Context, args []string) error
}

var verbs []verb

func init() { // not a literal: help lists the verbs, and is one
	verbs = []verb{
		{"up", "", "boot the cluster, or start its missing parts", noArgs(up)},
		{
			"status", "", "show daemons, nodes and pods; exit code 0 only if all is healthy",
			noArgs(status),
		},
		{"down", "", "end the cluster and remove every trace of it", noArgs(down)},
		{
			"load", "FILE...",
			"put the images of docker or OCI archives into the lab's registry and onto both nodes", load,
		},
		{
			"push", "[--as NAME] FILE...",
			"put them into the registry alone, from which nodes pull; NAME: under this name", push,
		},
		{
			"exec", "-- COMMAND...", "run a command where the cluster's addresses and kubectl are in reach",
			execute,
		},
		{"kubectl", "ARGUMENT...", "what hack/lab/kubectl calls", kubectl},
		{"image", "NAME [OPTIONS]", "build an image without Docker; see: lab image --help", buildImage},
		{
			"node", "VERB NODE ...", "cut a node's power, stop its kubelet, enter it; see: lab node --help",
			nodeVerb,
		},
		{"pod", "freeze|thaw|kill NAMESPACE POD", "freeze, resume or kill the processes of a pod", pod},
		{
			"daemon", "pause|resume DAEMON",
			"freeze a daemon of the control plane as it is, such as kube-apiserver or etcd, or resume it",
			daemon,
		},
		{"build", "", "build all binaries into the cache", noArgs(buildBinaries)},
		{
			"assets", "[--built]",
			"print the folder for KUBEBUILDER_ASSETS; --built: fail instead of building", assets,
		},
		{"help", "", "show this", noArgs(func(context.Context) error { usage(); return nil })},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := dispatch(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		usage()
		return errors.New("a verb is missing")
	}
	if args[0] == node.InitVerb {
		return initNode(args[1:])
	}
	if slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
		usage()
		return nil
	}
	for _, v := range verbs {
		if v.name != args[0] {
			continue
		}
		if ownHelp := v.name == "image" || v.name == "node" || v.name == "exec" ||
			v.name == "kubectl"; !ownHelp && wantsHelp(args[1:]) {
			fmt.Printf("usage: lab %s %s\n\n  %s\n", v.name, v.args, v.help)
			return nil
		}
		return v.run(ctx, args[1:])
	}
	return fmt.Errorf("unknown verb %q; see: hack/lab/lab help", args[0])
}

func wantsHelp(args []string) bool {
	return len(args) > 0 && slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0])
}

func noArgs(f func(context.Context) error) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("unexpected argument %q", args[0])
		}
		return f(ctx)
	}
}

func usage() {
	fmt.Print(`lab: a real Kubernetes with two nodes on this machine, without Docker or internet

usage: hack/lab/lab VERB ...

`)
	for _, v := range verbs {
		head := v.name + " " + v.args
		if len(head) > 30 {
			fmt.Printf("  %s\n  %-30s  %s\n", head, "", v.help)
			continue
		}
		fmt.Printf("  %-30s  %s\n", head, v.help)
	}
	fmt.Print(`
environment:
  CLUSTER           lab (default, as root on Linux), kind, or existing: the cluster of the current kubeconfig
  LAB_KUBERNETES    the version of Kubernetes (default ` + settings.KubernetesVersion + `); hack/lab/kube/versions has the others
  REDQUAKE_LAB_DIR  the lab's state folder (default /var/lib/redquake-lab)
  XDG_CACHE_HOME    built binaries go to redquake/lab below it (default ~/.cache)
`)
}
