// Command kube is every Kubernetes program of the lab in one binary, as busybox is for a shell's
// tools: the name of the executable selects the program. One link instead of seven saves minutes
// and 800 MB.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics on /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info on /metrics
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubeapiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kubecontrollermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubescheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// programs maps the name of the executable to a program, which returns an exit code.
var programs = map[string]func() int{
	"etcd":           func() int { etcdmain.Main(os.Args); return 0 },
	"kube-apiserver": func() int { return cli.Run(kubeapiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int {
		return cli.Run(kubecontrollermanager.NewControllerManagerCommand())
	},
	"kube-scheduler": func() int { return cli.Run(kubescheduler.NewSchedulerCommand()) },
	"kube-proxy":     func() int { return cli.Run(kubeproxy.NewProxyCommand()) },
	"kubelet": func() int {
		return cli.Run(kubelet.NewKubeletCommand(context.Background()))
	},
	"kubectl": runKubectl,
}

func main() {
	name := filepath.Base(os.Args[0])
	program, ok := programs[name]
	if !ok {
		fmt.Fprintf(os.Stderr,
			"kube: called as %q, which is none of its programs; call it through one of the links beside it, such as kubectl\n",
			name)
		os.Exit(2)
	}
	os.Exit(program())
}

// runKubectl prints its own errors, as kubectl's main does, so that they carry kubectl's wording.
func runKubectl() int {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
