package target

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFromEnv(t *testing.T) {
	called := errors.New("the lab was chosen")
	lab := func() (Target, error) { return nil, called }
	for cluster, want := range map[string]string{
		"lab": "the lab was chosen", "kind": "", "existing": "", "minikube": "may be lab, kind or existing",
	} {
		t.Setenv("CLUSTER", cluster)
		_, err := FromEnv(lab, Streams{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("CLUSTER=%s: %v, want %q", cluster, err, want)
		}
	}
}

// fakeTool puts a program called name first in PATH that writes its arguments to the returned file.
func fakeTool(t *testing.T, name, script string) string {
	t.Helper()
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	content := "#!/bin/sh\necho " + name + " \"$@\" >> " + calls + "\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return calls
}

func TestKindCreatesOnce(t *testing.T) {
	fakeTool(t, "docker", "")
	calls := fakeTool(t, "kind",
		`[ "$1" = get ] && cat "$(dirname "$0")/clusters"; [ "$1" = create ] && echo redquake > "$(dirname "$0")/clusters"; exit 0`)
	os.WriteFile(filepath.Join(filepath.Dir(calls), "clusters"), []byte("other\n"), 0o644)
	var out bytes.Buffer
	k := kind{Streams{Out: &out, Err: &out}}
	for range 2 {
		if err := k.Up(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	data, _ := os.ReadFile(calls)
	if got := strings.Count(string(data), "create cluster --name redquake"); got != 1 {
		t.Errorf("created %d times:\n%s", got, data)
	}
}

func TestExistingLeavesTheClusterAlone(t *testing.T) {
	calls := fakeTool(t, "kubectl", "exit 1")
	var out bytes.Buffer
	e := existing{Streams{Out: &out, Err: &out}}
	if err := e.Up(context.Background()); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("a cluster that does not answer: %v", err)
	}
	os.Remove(calls)
	if err := errors.Join(e.Down(context.Background()), e.Load(context.Background(), []string{"a.tar"})); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "Push a.tar") {
		t.Errorf("load explains nothing: %s", out.String())
	}
	if _, err := os.Stat(calls); err == nil {
		t.Error("down or load touched the cluster")
	}
}
