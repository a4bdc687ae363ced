package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redquake/redquake/cmd/redquake/internal/archive"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/report/page"
)

const savedPass = "../../internal/report/run/testdata/pass.yaml"

func TestReportOfAFile(t *testing.T) {
	for _, form := range page.FormNames() {
		code, out, stderr := called("redquake", "report", savedPass, "-o", form)
		if code != cli.ExitOK || stderr != "" {
			t.Errorf("exit code %d, stderr %q", code, stderr)
		}
		clitest.IsForm(t, form, out, "checkout-cache")
		code, out, stderr = called("redquake", "report", savedPass, "-o", form, "--fault", "kill-primary")
		if code != cli.ExitOK || stderr != "" {
			t.Errorf("exit code %d, stderr %q", code, stderr)
		}
		clitest.IsForm(t, form, out, "kill-primary")
	}
	file := filepath.Join(t.TempDir(), "run.record")
	if err := os.WriteFile(file, clitest.Record(t), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, _ := called("redquake", "report", file)
	if clitest.IsForm(t, "markdown", out, "load test run"); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestReportOfACluster(t *testing.T) {
	file, err := os.Open(savedPass)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := archive.ReadRun(file)
	if err != nil {
		t.Fatal(err)
	}
	const base = "/apis/redquake.dev/v1alpha1/namespaces/shop/"
	objects := map[string]any{
		base + "redisloadtests/checkout-cache": typed("RedisLoadTest", &saved.Tests[0]),
		base + "redisfaults": map[string]any{
			"kind":  "RedisFaultList",
			"items": []any{typed("RedisFault", &saved.Faults[0])},
		},
		base + "redisfaults/kill-primary": typed("RedisFault", &saved.Faults[0]),
	}
	for _, args := range [][]string{{"checkout-cache", "--fault", "kill-primary"}, {"--fault", "kill-primary"}} {
		code, out, stderr := called(
			append([]string{"redquake", "report", "-o", "html", "--kubeconfig", clitest.Cluster(t, objects)}, args...)...)
		if clitest.IsForm(t, "html", out, "kill-primary"); code != cli.ExitOK || stderr != "" ||
			strings.Contains(out, `id="curves"`) {
			t.Errorf("without a record: exit code %d, stderr %q", code, stderr)
		}
	}
	for want, args := range map[string][]string{
		"there is no RedisFault other in namespace shop": {"--fault", "other"},
		"there is no RedisFault other, but kill-primary": {
			"checkout-cache", "--fault",
			"other",
		},
		"there is no RedisLoadTest nothing in namespace shop, and no file of this name": {"nothing"},
	} {
		code, out, stderr := called(append([]string{"redquake", "report", "--kubeconfig", clitest.Cluster(t, objects)},
			args...)...)
		if code != cli.ExitError || out != "" || stderr != "redquake report: "+want+"\n" {
			t.Errorf("exit code %d, stdout %q, stderr %q, want %q", code, out, stderr, want)
		}
	}
}

// typed is an object as the API server serves it.
func typed(kind string, object any) map[string]any {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		panic(err)
	}
	out["kind"], out["apiVersion"] = kind, "redquake.dev/v1alpha1"
	return out
}

func TestReportRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"name a RedisLoadTest or a file, or a fault by --fault":                   nil,
		`--output: "pdf" is none of markdown, html, json, junit, csv, text`:       {"x", "-o", "pdf"},
		"open ./none.yaml: no such file or directory":                             {"./none.yaml"},
		"standard input: contains no ConfigMap with the key series in binaryData": {"-"},
	} {
		code, out, stderr := called(append([]string{"redquake", "report"}, args...)...)
		if code != cli.ExitError || out != "" || !strings.HasPrefix(stderr, "redquake report: "+want) {
			t.Errorf("exit code %d, stdout %q, stderr %q, want %q", code, out, stderr, want)
		}
	}
}
