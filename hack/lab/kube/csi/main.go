// Command csi is the lab's CSI driver, disk.lab.csi.
//
//	labcsi controller --kubeconfig FILE --data DIR             provisions volumes, attaches and detaches them
//	labcsi node --node-id NODE --kubelet-root DIR --data DIR   mounts them on one node
//
// A volume's data is DATA/HANDLE (backend "dir", bind-mounted) or DATA/HANDLE.img (backend "loop":
// an ext4 file system of the requested size, so that a full disk is a real one, and with the
// class's parameter writeIOPS a slow one). Both nodes see DATA, as two machines see one network
// disk.
// What keeps a volume to one node is the unmodified attach/detach controller of
// kube-controller-manager.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redquake/redquake/hack/lab/kube/csi/volume"
)

const driverName = "disk.lab.csi"

func main() {
	log.SetFlags(log.LstdFlags | log.Lmicroseconds)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: labcsi controller|node [flags]")
	}
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API server (controller)")
	data := flags.String("data", "", "folder of the volumes' data")
	nodeID := flags.String("node-id", "", "name of the node (node)")
	kubeletRoot := flags.String("kubelet-root", "/var/lib/kubelet", "kubelet's folder (node)")
	attachDelay := flags.Duration("attach-delay", time.Second, "time an attach takes (controller)")
	detachDelay := flags.Duration("detach-delay", time.Second, "time a detach takes (controller)")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *data == "" {
		return fmt.Errorf("labcsi %s: --data is missing", args[0])
	}
	if err := os.MkdirAll(*data, 0o755); err != nil {
		return err
	}
	switch args[0] {
	case "controller":
		return runController(ctx, *kubeconfig, volume.Disk{Dir: *data}, delays{
			attach: *attachDelay,
			detach: *detachDelay,
		})
	case "node":
		return runNode(*nodeID, *kubeletRoot, volume.Disk{Dir: *data})
	default:
		return fmt.Errorf("labcsi: unknown mode %q; the modes are controller and node", args[0])
	}
}
