package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/cmd/redquake/internal/loadflags"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/result"
)

// An API is loaded without any Redis, over as many connections as users.
func TestLoadOfAnAPI(t *testing.T) {
	t.Setenv(loadflags.PasswordVariable, "")
	var served atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
	t.Cleanup(api.Close)
	file := filepath.Join(t.TempDir(), "test.yaml")
	text := strings.Replace(clitest.LoadTestYAML, `  target: {addresses: ["127.0.0.1:6379"]}`+"\n", "", 1)
	text = strings.Replace(text, `{commands: [{name: get, command: [GET, "{key}"]}]}`, "{http: {url: "+api.URL+"/}}", 1)
	text = strings.Replace(text, "{users: 10, duration: 30s}", "{users: 60, requests: 300}", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := called("redquake", "load", "-f", file, "-o", "json")
	r := clitest.Result(t, out)
	// On a machine that is busy, figures are in doubt. They are not looked at here.
	others := slices.DeleteFunc(slices.Clone(r.Doubts), func(d impact.Doubt) bool {
		return d.Reason == impact.GeneratorStalled || d.Reason == impact.GeneratorStarved
	})
	want := cli.ExitOK
	if len(r.Doubts) > 0 {
		want = cli.ExitInconclusive
	}
	if code != want || r.Outcome != result.Finished || r.Total.OK != 300 || served.Load() < 300 ||
		len(r.Target.Addresses) != 0 || r.Redis != nil || len(others) > 0 {
		t.Errorf("exit code %d, %+v, %d served, stderr\n%s", code, r, served.Load(), stderr)
	}
	if _, text, _ := called("redquake", "load", "-f", file); !strings.Contains(text, "\nclosed loop, 60 users · for ") {
		t.Errorf("text\n%s", text)
	}
}
