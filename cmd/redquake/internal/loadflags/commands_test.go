package loadflags

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
)

// writtenBy are the commands of flags --command.
func writtenBy(texts ...string) []written {
	all, _ := (&Flags{sent: sent{commands: texts}}).writtenCommands(nil)
	return all
}

func TestParseCommands(t *testing.T) {
	got, err := parseCommands(writtenBy(
		"SET {key} {value}", "9:GET {key}", "GET shop:1", `EVAL "return redis.call('GET', KEYS[1])" 1 {key}`, `SET k ''`,
		"JSON.GET {key}", `2:SET "a\"b" x`,
	))
	if err != nil {
		t.Fatal(err)
	}
	want := []v1alpha1.WorkloadCommand{
		{Name: "set", Weight: 1, Command: []string{"SET", "{key}", "{value}"}},
		{Name: "get", Weight: 9, Command: []string{"GET", "{key}"}},
		{Name: "get-2", Weight: 1, Command: []string{"GET", "shop:1"}},
		{Name: "eval", Weight: 1, Command: []string{"EVAL", "return redis.call('GET', KEYS[1])", "1", "{key}"}},
		{Name: "set-2", Weight: 1, Command: []string{"SET", "k", ""}},
		{Name: "json.get", Weight: 1, Command: []string{"JSON.GET", "{key}"}},
		{Name: "set-3", Weight: 2, Command: []string{"SET", `a"b`, "x"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseCommandsRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                  `--command "": must begin with the name of a command of Redis`,
		"3:":                `--command "3:": must begin with the name of a command of Redis`,
		"0:GET x":           `--command "0:GET x": the weight 0 must be between 1 and 1000000`,
		"99999999999:GET x": `--command "99999999999:GET x": the weight 99999999999 must be between 1 and 1000000`,
		"3:select 4": `--command "3:select 4": SELECT changes the connection that it is sent over, which requests of ` +
			`all operations share: set spec.target.database (--database)`,
		"GET __key__":        `--command "GET __key__": __key__ is a placeholder of memtier_benchmark: write {key}`,
		`SET "{key} {value}`: `--command "SET \"{key} {value}": a quote is not closed`,
	} {
		if _, err := parseCommands(writtenBy(text)); err == nil || err.Error() != want {
			t.Errorf("%q: the error is %v, want %s", text, err, want)
		}
	}
}

// The commands of a file are those of --command, with weights, escapes and placeholders; lines without one are
// comments.
func TestCommandsOfAFile(t *testing.T) {
	const text = "# the mix of the shop\r\n9:GET {key}\n\n  SET {key} \"a\\r\\n\\x00#\"\n#5:PING\nGET #fixed"
	file := filepath.Join(t.TempDir(), "commands.txt")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []plan.Command{
		{Name: "ping", Weight: 1, Words: []string{"PING"}},
		{Name: "get", Weight: 9, Words: []string{"GET", "{key}"}},
		{Name: "set", Weight: 1, Words: []string{"SET", "{key}", "a\r\n\x00#"}},
		{Name: "get-2", Weight: 1, Words: []string{"GET", "#fixed"}},
	}
	for _, from := range []string{file, "-"} {
		got, _, err := planOf(t, text, "--commands", from, "--command", "PING")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Workload.Commands); diff != "" {
			t.Errorf("%s (-want +got):\n%s", from, diff)
		}
	}
	for text, want := range map[string]string{
		"GET {key}\nSET \"a": "--commands: line 2 of -: a quote is not closed",
		"# nothing\n\n":      "--commands: - has no command",
		"0:GET x":            "--commands: line 1 of -: the weight 0 must be",
	} {
		if _, _, err := planOf(t, text, "--commands", "-"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: the error is %v, want %s", text, err, want)
		}
	}
	for _, args := range [][]string{
		{"--commands", "/does/not/exist"},
		{"--commands", file, "--tests", "set"},
		{"--commands", "-", "-f", "-"},
		{"--commands", file, "--record", file},
	} {
		if _, _, err := planOf(t, "", args...); err == nil || !strings.Contains(err.Error(), "--commands") {
			t.Errorf("%q: the error is %v", args, err)
		}
	}
}
