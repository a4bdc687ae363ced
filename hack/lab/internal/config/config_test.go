package config

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redquake/redquake/hack/lab/internal/settings"
)

var update = flag.Bool("update", false, "write the golden files")

var state = settings.State{Dir: "/var/lib/redquake-lab"}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; if that is meant, run: go test ./internal/config -update\ngot:\n%s", path, got)
	}
}

func TestNodeFiles(t *testing.T) {
	for _, node := range settings.Nodes {
		for path, content := range NodeFiles(state, node, "12Gi") {
			golden(t, node.Name+"-"+filepath.Base(path), content)
		}
	}
}

func TestBaseManifests(t *testing.T) { golden(t, "base.yaml", BaseManifests()) }

func TestCommandLines(t *testing.T) {
	var b bytes.Buffer
	daemons := append(Store(state), Control(state)...)
	for _, node := range settings.Nodes {
		daemons = append(daemons, OnNode(state, node)...)
	}
	for _, d := range daemons {
		fmt.Fprintf(&b, "%s: %s\n  %s\n", d.Name, d.Program, strings.Join(d.Args, "\n  "))
	}
	golden(t, "daemons.txt", b.Bytes())
}

func TestEveryUserHasACertificate(t *testing.T) {
	have := map[string]bool{}
	for _, r := range Certificates() {
		have[r.Name] = r.Client
	}
	for _, user := range Users() {
		if !have[user] {
			t.Errorf("%s has a kubeconfig but no client certificate", user)
		}
	}
}

func TestLeaseFitsGracePeriod(t *testing.T) {
	// A node renews its lease every quarter of the duration; three renewals must be missed before it is given up.
	var grace int
	fmt.Sscanf(settings.NodeMonitorGracePeriod, "%ds", &grace)
	if renewal := settings.NodeLeaseDurationSeconds / 4; grace < 3*renewal {
		t.Errorf("grace period %d s is less than three lease renewals of %d s", grace, renewal)
	}
}
