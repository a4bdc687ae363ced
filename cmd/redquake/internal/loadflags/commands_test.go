package loadflags

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/api/v1alpha1"
)

func TestParseCommands(t *testing.T) {
	got, err := parseCommands([]string{
		"SET {key} {value}", "9:GET {key}", "GET shop:1", `EVAL "return redis.call('GET', KEYS[1])" 1 {key}`, `SET k ''`,
		"JSON.GET {key}", `2:SET "a\"b" x`,
	})
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
		if _, err := parseCommands([]string{text}); err == nil || err.Error() != want {
			t.Errorf("%q: the error is %v, want %s", text, err, want)
		}
	}
}
