package build

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/hack/lab/internal/settings"
)

func write(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestHashFollowsItsInputsAndNothingElse(t *testing.T) {
	root := t.TempDir()
	p := part{name: "csi", version: "1", sources: []string{"kube/go.mod", "kube/csi"}, command: []string{"go", "build"}}
	write(t, root, "kube/go.mod", "module x")
	write(t, root, "kube/csi/main.go", "package main")
	hash := func() string {
		t.Helper()
		h, err := p.hash(root)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	before := hash()
	same := map[string]func(){
		"another folder's file": func() { write(t, root, "kube/main.go", "package main") },
		"a test":                func() { write(t, root, "kube/csi/main_test.go", "package main") },
		"test data":             func() { write(t, root, "kube/csi/testdata/x", "x") },
	}
	for what, change := range same {
		if change(); hash() != before {
			t.Errorf("%s changed the hash", what)
		}
	}
	differs := []struct {
		what   string
		change func()
	}{
		{"content", func() { write(t, root, "kube/csi/main.go", "package main // changed") }},
		{"a new file", func() { write(t, root, "kube/csi/node.go", "package main") }},
		{"a file's name", func() {
			os.Rename(filepath.Join(root, "kube/csi/node.go"), filepath.Join(root, "kube/csi/nodes.go"))
		}},
		{"the command", func() { p.command = []string{"go", "build", "-v"} }},
		{"the version", func() { p.version = "2" }},
	}
	for _, d := range differs {
		last := hash()
		if d.change(); hash() == last {
			t.Errorf("%s did not change the hash", d.what)
		}
	}
	p.sources = append(p.sources, "missing")
	if _, err := p.hash(root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing source: %v", err)
	}
}

func TestPublishIsAllOrNothing(t *testing.T) {
	b := Builder{Cache: t.TempDir(), Progress: io.Discard}
	path := filepath.Join(b.Cache, "parts", "x-1")
	failed := errors.New("interrupted")
	err := b.publish(path, func(dir string) error { write(t, dir, "x", "half"); return failed })
	if !errors.Is(err, failed) || exists(path) {
		t.Fatalf("an interrupted build: %v, published %v", err, exists(path))
	}
	if err := b.publish(path, func(dir string) error { write(t, dir, "x", "whole"); return nil }); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(filepath.Join(path, "x")); string(data) != "whole" {
		t.Errorf("published %q", data)
	}
	if left, _ := filepath.Glob(filepath.Join(b.Cache, "parts", stalePrefix+"*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPartsAreConsistent(t *testing.T) {
	names := map[string]bool{}
	for _, p := range partsWith(t, settings.KubernetesVersion) {
		for _, n := range append(p.files, p.links...) {
			if names[n] {
				t.Errorf("two parts make %s", n)
			}
			names[n] = true
		}
		for _, s := range p.sources {
			if !exists(filepath.Join("../..", s)) {
				t.Errorf("%s: no source %s", p.name, s)
			}
		}
	}
	if got := kubeLinkFlags("1.36.3"); !strings.Contains(got, "k8s.io/client-go/pkg/version.gitMinor=36") {
		t.Errorf("link flags %s", got)
	}
}

func partsWith(t *testing.T, kubernetes string) []part {
	t.Helper()
	all, err := Builder{Source: "../..", Kubernetes: kubernetes}.parts()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Only what is of Kubernetes is built for each version; the rest is the same in the cache.
func TestEachKubernetesHasItsOwnParts(t *testing.T) {
	files, _ := filepath.Glob("../../kube/versions/*.mod")
	if len(files) < 2 {
		t.Fatalf("other versions: %v", files)
	}
	versions := []string{settings.KubernetesVersion}
	for _, f := range files {
		version := strings.TrimSuffix(filepath.Base(f), ".mod")
		versions = append(versions, version)
		text, err := os.ReadFile(f)
		if err != nil || !strings.Contains(string(text), "k8s.io/kubernetes v"+version+"\n") {
			t.Errorf("%s does not require k8s.io/kubernetes v%s, %v", f, version, err)
		}
	}
	hashes := map[string]map[string]bool{}
	for _, version := range versions {
		for _, p := range partsWith(t, version) {
			hash, err := p.hash("../..")
			if err != nil {
				t.Fatal(err)
			}
			if hashes[p.name] == nil {
				hashes[p.name] = map[string]bool{}
			}
			hashes[p.name][hash] = true
			own := p.name == "kube" || p.name == "csi"
			want := own && version != settings.KubernetesVersion
			flag := "-modfile=versions/" + version + ".mod"
			if got := slices.Contains(p.argv("/out"), flag); got != want {
				t.Errorf("%s of %s: %v", p.name, version, p.argv("/out"))
			}
			if text := strings.Join(p.argv("/out"), " "); p.name == "kube" &&
				!strings.Contains(text, "k8s.io/component-base/version.gitVersion=v"+version+" ") {
				t.Errorf("kube of %s: %s", version, text)
			}
		}
	}
	for name, of := range hashes {
		want := 1
		if name == "kube" || name == "csi" {
			want = len(versions)
		}
		if len(of) != want {
			t.Errorf("%s has %d hashes for %d versions", name, len(of), len(versions))
		}
	}
}

func TestUnknownKubernetes(t *testing.T) {
	_, err := Builder{Source: "../..", Kubernetes: "1.2.3"}.Built()
	if err == nil || !strings.Contains(err.Error(), settings.KubernetesVersion) ||
		!strings.Contains(err.Error(), "1.35.8") {
		t.Errorf("%v", err)
	}
}

func TestProgressCountsPackages(t *testing.T) {
	p := &progress{part: part{name: "kube"}, number: 1, all: 7, began: time.Now()}
	const output = "go: downloading k8s.io/api v0.36.3\ninternal/cpu\nk8s.io/api/core/v1\n# k8s.io/kubernetes\nmain.go:7: undefined: x\n"
	_, _ = p.Write([]byte(output))
	if got := p.String(); got != "  part 1 of 7, kube: 2 packages compiled, 0s so far" {
		t.Error(got)
	}
	p.packages = 2840
	if got := p.String(); got != "  part 1 of 7, kube: 2 of 2840 packages compiled, 0s so far" {
		t.Error(got)
	}
	p.packages = 2
	if got := p.String(); got != "  part 1 of 7, kube: all 2 packages compiled, linking, 0s so far" {
		t.Error(got)
	}
	if got := string(withoutPackages([]byte(output))); strings.Contains(got, "core") ||
		!strings.Contains(got, "undefined: x") {
		t.Error(got)
	}
}

func TestTargetsOfCommands(t *testing.T) {
	want := map[string]string{
		"kube": ".", "csi": "./csi", "metrics-server": "sigs.k8s.io/metrics-server/cmd/metrics-server",
		"containerd": "github.com/containerd/containerd/v2/cmd/containerd " +
			"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2 github.com/containerd/containerd/v2/cmd/ctr",
	}
	for _, p := range partsWith(t, settings.KubernetesVersion) {
		got := strings.Join(p.targets(), " ")
		if expected, ok := want[p.name]; ok && got != expected {
			t.Errorf("%s: %s", p.name, got)
		}
		if versioned := strings.Contains(strings.Join(p.command, " "), "@"); versioned != (p.module != "") {
			t.Errorf("%s: module %q", p.name, p.module)
		}
		if argv := p.argv("/out"); argv[2] != "-v" {
			t.Errorf("%s: %v", p.name, argv)
		}
	}
}

// What the lab, the tests and the image are built with is the same, or all that they have in common would be compiled
// twice.
func TestFlagsAreTheSameEverywhere(t *testing.T) {
	for file, line := range map[string]string{
		"../../../../Makefile":   "export GOFLAGS := " + flags + "\n",
		"../../../../Dockerfile": `GOFLAGS="` + flags + "\"\n",
		"../../lab":              "GOFLAGS='" + flags + "' go build",
	} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), line) {
			t.Errorf("%s: no %q, %v", file, line, err)
		}
	}
}

func TestBuiltBuildsNothing(t *testing.T) {
	b := Builder{
		Source: "../..", Cache: t.TempDir(), Kubernetes: settings.KubernetesVersion, Progress: io.Discard,
	}
	if dir, err := b.Built(); err == nil {
		t.Errorf("built in an empty cache: %s", dir)
	}
	set, _, err := b.folders(partsWith(t, b.Kubernetes))
	if err != nil {
		t.Fatal(err)
	}
	write(t, set, "kube", "")
	if dir, err := b.Built(); err != nil || dir != set {
		t.Errorf("%q, %v, want %s", dir, err, set)
	}
}
