// Package build makes the lab's binaries from Go modules and keeps them in the user's cache, by the
// hash of what they are made from.
package build

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/redquake/redquake/hack/lab/internal/settings"
)

// flags are those of every build, and of the Makefile: what programs and tests have in common is
// compiled once.
const flags = "-trimpath -buildvcs=false -gcflags=all=-dwarf=false"

// part is a piece that is built, cached and rebuilt on its own.
type part struct {
	name, version string
	sources       []string // files and folders it is made from, relative to the lab's folder
	dir           string   // where the command runs, relative to the lab's folder
	command       []string // OUT is replaced by the folder of the binaries
	files         []string // that the command must create
	links         []string // further names of files[0]
	module        string   // with its version, of a command that installs packages of another module
	firstTime     string   // how long it takes when nothing is cached
}

// kubePrograms are the names the one Kubernetes binary is called by.
var kubePrograms = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet",
	"kubectl",
}

func parts() []part {
	const containerd = "github.com/containerd/containerd/v2"
	at := "@v" + settings.ContainerdVersion
	return []part{
		{
			name: "kube", version: settings.KubernetesVersion, dir: "kube",
			sources: []string{"kube/go.mod", "kube/go.sum", "kube/main.go"},
			command: []string{"go", "build", "-ldflags", kubeLinkFlags(), "-o", "OUT/kube", "."},
			files:   []string{"kube"}, links: kubePrograms, firstTime: "6 minutes",
		},
		{
			name: "csi", version: "1", dir: "kube",
			sources: []string{"kube/go.mod", "kube/go.sum", "kube/csi"},
			command: []string{"go", "build", "-ldflags", "-s -w", "-o", "OUT/labcsi", "./csi"},
			files:   []string{"labcsi"}, firstTime: "20 seconds",
		},
		{
			name: "coredns", version: settings.CoreDNSVersion, dir: "coredns", sources: []string{"coredns"},
			command: []string{"go", "build", "-ldflags", "-s -w", "-o", "OUT/coredns", "."},
			files:   []string{"coredns"}, firstTime: "2 minutes",
		},
		{
			name: "containerd", version: settings.ContainerdVersion, dir: ".", module: containerd + at,
			command: []string{
				"go", "install", "-ldflags",
				"-s -w -X " + containerd + "/version.Version=v" + settings.ContainerdVersion,
				containerd + "/cmd/containerd" + at, containerd + "/cmd/containerd-shim-runc-v2" + at,
				containerd + "/cmd/ctr" + at,
			},
			files: []string{"containerd", "containerd-shim-runc-v2", "ctr"}, firstTime: "2 minutes",
		},
		{
			name: "metrics-server", version: settings.MetricsServerVersion, dir: ".",
			module: "sigs.k8s.io/metrics-server@v" + settings.MetricsServerVersion,
			command: []string{
				"go", "install", "-ldflags", "-s -w",
				"sigs.k8s.io/metrics-server/cmd/metrics-server@v" + settings.MetricsServerVersion,
			},
			files: []string{"metrics-server"}, firstTime: "3 minutes",
		},
		{
			name:      "registry",
			version:   "1",
			dir:       ".",
			sources:   []string{"go.mod", "go.sum", "cmd/registry", "internal/registry", "internal/files"},
			command:   []string{"go", "build", "-ldflags", "-s -w", "-o", "OUT/registry", "./cmd/registry"},
			files:     []string{"registry"},
			firstTime: "10 seconds",
		},
		{
			name: "pause", version: "1", dir: ".", sources: []string{"cmd/pause"},
			command: []string{"go", "build", "-ldflags", "-s -w", "-o", "OUT/pause", "./cmd/pause"},
			files:   []string{"pause"}, firstTime: "1 second",
		},
	}
}

// kubeLinkFlags set the version in the binary, as in a release; nodes and `kubectl version` show
// it.
func kubeLinkFlags() string {
	major, rest, _ := strings.Cut(settings.KubernetesVersion, ".")
	minor, _, _ := strings.Cut(rest, ".")
	var b strings.Builder
	b.WriteString("-s -w")
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		fmt.Fprintf(&b,
			" -X %s.gitVersion=v%s -X %s.gitMajor=%s -X %s.gitMinor=%s -X %s.gitTreeState=clean",
			pkg, settings.KubernetesVersion, pkg, major, pkg, minor, pkg)
	}
	return b.String()
}

// argv is the command with the output folder filled in; `go install` takes it from GOBIN instead.
// It lists the packages that it compiles.
func (p part) argv(out string) []string {
	argv := append(slices.Clone(p.command[:2]), "-v") // not in command: what is built stays the same
	for _, a := range p.command[2:] {
		if rest, ok := strings.CutPrefix(a, "OUT/"); ok {
			a = filepath.Join(out, rest)
		}
		argv = append(argv, a)
	}
	return argv
}
