package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/internal/record/merged"
)

// A command without its arguments, or with too many, says what to name; none counts arguments.
func TestArguments(t *testing.T) {
	record := filepath.Join(t.TempDir(), "run.record")
	text, err := merged.New("run", time.Unix(0, 0), time.Second, []string{"get"}, 1).Encode(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(record, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"stop":          "name what to stop, as redisloadtest/checkout-cache, or set --all",
		"stop --all x":  "--all stops all faults of the namespace",
		"watch":         "name what runs, as redisloadtest/checkout-cache",
		"rerun":         "name what is over, as redisloadtest/checkout-cache",
		"rerun a b":     "there are 2 arguments: name what is over, as redisloadtest/checkout-cache only",
		"mark":          "name the fault of type External",
		"results":       "name a RedisLoadTest, or a file",
		"report":        "name a RedisLoadTest or a file",
		"compare":       "name two cells at least, as before='before-*.json' after='after-*.json', or an experiment",
		"compare a=b":   "name two cells at least",
		"compare a b c": "runs are compared by cells, each with a name: before=RUNS after=RUNS",
		"compare " + record + " " +
			record: " is the record of a run: runs are compared by cells, each with a name, as before=" + record,
	} {
		code, stdout, stderr := called(append([]string{"redquake"}, strings.Fields(command)...)...)
		if code != cli.ExitError || stdout != "" || !strings.Contains(stderr, want) || strings.Contains(stderr, "arg(s)") {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want %q", command, code, stdout, stderr, want)
		}
	}
}
