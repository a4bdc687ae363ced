package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/loadflags"
)

// Whatever prevents a result in JSON is a document in its place, beside the sentence on stderr.
func TestErrorInJSON(t *testing.T) {
	t.Setenv(loadflags.PasswordVariable, "")
	for command, want := range map[string]failedError{
		"load --nosuch -o json":                              {"", "unknown flag: --nosuch"},
		"load -ojson --duration 5":                           {"", `--duration: "5" must be a duration with its unit: 5s?`},
		"load --output=json -f /does/not/exist":              {"", "--file: open /does/not/exist: no such file or directory"},
		"load 127.0.0.1:1 --wait 0 --output json":            {"TargetUnreachable", "127.0.0.1:1 is not ready: dial tcp"},
		"load redis://:geheim@127.0.0.1:1 --wait 0 -o json":  {"TargetUnreachable", "127.0.0.1:1 is not ready: dial tcp"},
		"load redis://:geheim@127.0.0.1:1 x -o json":         {"", "only one argument"},
		"results /does/not/exist.record -o json":             {"", "/does/not/exist.record"},
		"report ./nosuch.record -o json":                     {"", "nosuch.record"},
		"compare a=/does/not/exist b=/does/not/exist -ojson": {"", "a: "},
	} {
		code, stdout, stderr := called(append([]string{"redquake"}, strings.Fields(command)...)...)
		var got failedDocument
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || got.Version != 1 || code != cli.ExitError ||
			got.Error.Reason != want.Reason || !strings.HasPrefix(got.Error.Message, want.Message) &&
			!strings.Contains(got.Error.Message, want.Message) || !strings.Contains(stderr, want.Message) ||
			strings.Contains(stdout+stderr, "geheim") {
			t.Errorf("%s: exit code %d, %v, stdout\n%sstderr\n%s", command, code, err, stdout, stderr)
		}
	}
	for _, command := range []string{"load --nosuch", "load --nosuch -o text", "load --nosuch -- -o json"} {
		if _, stdout, _ := called(append([]string{"redquake"}, strings.Fields(command)...)...); stdout != "" {
			t.Errorf("%s: stdout has %q", command, stdout)
		}
	}
}
