//go:build integration

package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// A password, and what the file of a data source name holds, are in no output, error, record or report: neither of
// loads that ran nor of those that could not log in.
func TestLoadShowsNoPassword(t *testing.T) {
	t.Parallel()
	const planted = "pLaNtEd"
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	right := file("right", planted+"-right")
	wrong := file("wrong", planted+"-wrong")
	article := file("test.yaml", cacheAsideYAML)
	set := redistest.NewSentinel(t, 1, redistest.SentinelOptions{
		Options:          redistest.Options{Password: planted + "-right"},
		SentinelPassword: planted + "-sentinel",
	})
	guarded := set.Primary.Address()
	renamed := redistest.Start(t, `rename-command AUTH ""`).Address()
	open := redistest.Start(t).Address()
	brief := []string{"--users", "2", "--requests", "300", "--verify-writes", "--verify-share", "10%"}
	database := func(dsn string) []string {
		return []string{"-f", article, "--address", open, "--dsn-file", file("dsn-"+dsn[:5], dsn)}
	}
	for name, test := range map[string]struct {
		env, args []string
		want      string // in what it prints
	}{
		"the environment": {
			[]string{"REDISCLI_AUTH=" + planted + "-right"},
			append(brief, "--address", guarded),
			"load test from this machine",
		},
		"a file, as JSON": {
			nil, append(brief, "--address", guarded, "--password-file", right, "-o", "json"),
			`"outcome": "Finished"`,
		},
		"go-redis": {
			nil,
			append(brief[:4:4], "--address", guarded, "--password-file", right, "--driver", "GoRedis"),
			"load test from this machine",
		},
		"sentinels": {
			nil,
			append(brief, "--sentinel", set.SentinelAddresses()[0], "--password-file", right, "--sentinel-password-file",
				file("sentinel", planted+"-sentinel")), "load test from this machine",
		},
		"a wrong one": {nil, append(brief, "--address", guarded, "--password-file", wrong), "WRONGPASS"},
		"a wrong one of a sentinel": {
			nil,
			append(brief, "--sentinel", set.SentinelAddresses()[0], "--password-file", right, "--sentinel-password-file", wrong),
			"WRONGPASS",
		},
		"go-redis, a wrong one": {
			nil,
			append(brief[:4:4], "--address", guarded, "--password-file", wrong, "--driver", "GoRedis"), "WRONGPASS",
		},
		"AUTH is renamed":      {nil, append(brief, "--address", renamed, "--password-file", right), "unknown command"},
		"a server without TLS": {nil, append(brief, "--address", guarded, "--password-file", right, "--tls"), "TLS"},
		"a path": {
			nil,
			append(brief, "--address", guarded, "--password-file", filepath.Join(folder, "none")), "no such file",
		},
		"PostgreSQL": {
			nil,
			database("postgres://pLaNtEd-user:pLaNtEd-password@127.0.0.1:1/shop?sslmode=disable&application_name=pLaNtEd-name"),
			"connection refused",
		},
		"no PostgreSQL": {
			nil, database("pLaNtEd-user:pLaNtEd-password@tcp(127.0.0.1:3306)/shop"),
			"postgres://user:password@",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorded := filepath.Join(t.TempDir(), "run.record")
			_, out, stderr := runCommand(t, test.env, append([]string{"load", "--record", recorded}, test.args...)...)
			if !strings.Contains(out+stderr, test.want) {
				t.Errorf("%q is not in\n%s%s", test.want, out, stderr)
			}
			shown := map[string]string{"stdout": out, "stderr": stderr}
			if strings.Contains(test.want, "Finished") {
				shown["the record"] = unpacked(t, recorded)
				for _, format := range []string{"table", "json", "csv"} {
					_, shown["results as "+format], _ = runCommand(t, nil, "results", recorded, "-o", format)
				}
			}
			for what, text := range shown {
				if strings.Contains(text, planted) {
					t.Errorf("%s holds a password:\n%s", what, text)
				}
				if what != "stderr" && text == "" && strings.Contains(test.want, "Finished") {
					t.Errorf("%s is empty", what)
				}
			}
		})
	}
}

// unpacked is the content of a file of --record.
func unpacked(t *testing.T, file string) string {
	t.Helper()
	packed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := merged.Decode(packed); err != nil {
		t.Fatal(err)
	}
	content, err := gzip.NewReader(bytes.NewReader(packed[1:])) // a byte with the version comes before
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
