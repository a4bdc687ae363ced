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
	modFile       string   // instead of dir's go.mod, relative to dir
	firstTime     string   // how long it takes when nothing is cached
}

// kubePrograms are the names the one Kubernetes binary is called by.
var kubePrograms = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet",
	"kubectl",
}

// parts are the pieces of a lab with the Builder's Kubernetes.
func (b Builder) parts() ([]part, error) {
	modFile, err := b.modFile()
	if err != nil {
		return nil, err
	}
	modules := []string{"kube/go.mod", "kube/go.sum"}
	if modFile != "" {
		modules = []string{
			"kube/" + modFile,
			"kube/" + strings.TrimSuffix(modFile, ".mod") + ".sum",
		}
	}
	const containerd = "github.com/containerd/containerd/v2"
	at := "@v" + settings.ContainerdVersion
	return []part{
		{
			name: "kube", version: b.Kubernetes, dir: "kube", modFile: modFile,
			sources: append(slices.Clone(modules), "kube/main.go"),
			command: []string{"go", "build", "-ldflags", kubeLinkFlags(b.Kubernetes), "-o", "OUT/kube", "."},
			files:   []string{"kube"}, links: kubePrograms, firstTime: "6 minutes",
		},
		{
			name: "csi", version: "1", dir: "kube", modFile: modFile,
			sources: append(slices.Clone(modules), "kube/csi"),
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
	}, nil
}

// modFile is the module file of the Builder's Kubernetes, relative to kube; "" is for kube/go.mod.
func (b Builder) modFile() (string, error) {
	if b.Kubernetes == settings.KubernetesVersion {
		return "", nil
	}
	file := "versions/" + b.Kubernetes + ".mod"
	if exists(filepath.Join(b.Source, "kube", file)) {
		return file, nil
	}
	known := []string{settings.KubernetesVersion}
	files, _ := filepath.Glob(filepath.Join(b.Source, "kube", "versions", "*.mod"))
	for _, f := range files {
		known = append(known, strings.TrimSuffix(filepath.Base(f), ".mod"))
	}
	slices.Sort(known)
	return "", fmt.Errorf(
		"LAB_KUBERNETES is %q; the lab can be built with %s, and hack/lab/kube/versions/add.sh adds others",
		b.Kubernetes, strings.Join(known, ", "))
}

// kubeLinkFlags set the version in the binary, as in a release; nodes and `kubectl version` show
// it.
func kubeLinkFlags(version string) string {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	var b strings.Builder
	b.WriteString("-s -w")
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		fmt.Fprintf(&b,
			" -X %s.gitVersion=v%s -X %s.gitMajor=%s -X %s.gitMinor=%s -X %s.gitTreeState=clean",
			pkg, version, pkg, major, pkg, minor, pkg)
	}
	return b.String()
}

// argv is the command with the output folder filled in; `go install` takes it from GOBIN instead.
// It lists the packages that it compiles.
func (p part) argv(out string) []string {
	argv := append(slices.Clone(p.command[:2]), "-v") // not in command: what is built stays the same
	argv = append(argv, p.modFlags()...)
	for _, a := range p.command[2:] {
		if rest, ok := strings.CutPrefix(a, "OUT/"); ok {
			a = filepath.Join(out, rest)
		}
		argv = append(argv, a)
	}
	return argv
}

// modFlags choose the module file for a command of Go.
func (p part) modFlags() []string {
	if p.modFile == "" {
		return nil
	}
	return []string{"-modfile=" + p.modFile}
}
