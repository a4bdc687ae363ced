package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/testing/truth"
)

const row = `{"id":"T1","scenario":"a kill","truth":"1s","reported":"1s","ok":true}`

func TestRun(t *testing.T) {
	const writeRow = `echo '` + row + `' > $` + truth.Folder + `/1.json; `
	for _, c := range []struct {
		name, script string
		want         string // part of the error, or nothing
		rows         int
	}{
		{"complete", writeRow, "", 1},
		{"tests that failed after a row was right", writeRow + "exit 1", "the tests failed: exit status 1", 1},
		{"a test that was not run", "true", "missing: T1 a kill", 0},
		{"a row that is wrong", strings.Replace(writeRow, "true}", "false}", 1), "wrong: T1 a kill", 1},
		{"a row with another name", strings.Replace(writeRow, "a kill", "a stop", 1), "add the line: T1 a stop", 1},
		{"a row twice", writeRow + "cd $" + truth.Folder + " && cp 1.json 2.json", "more than one row: T1 a kill", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var printed strings.Builder
			out := filepath.Join(t.TempDir(), "truth.json")
			err := run(&printed, out, "T1 a kill\n", []string{"bash", "-c", c.script})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, expected %q", err, c.want)
			}
			text, err := os.ReadFile(out)
			var rows []truth.Row
			if err != nil || json.Unmarshal(text, &rows) != nil || len(rows) != c.rows ||
				strings.Count(printed.String(), "\n") != 1+c.rows {
				t.Errorf("%v, %s and table\n%s, expected %d rows", err, text, printed.String(), c.rows)
			}
		})
	}
}

// However a test fails, go test says so; a row of another one does not hide it.
func TestFailuresOfTests(t *testing.T) {
	const begin = "package p\nimport (\"os\"; \"testing\")\n" +
		"func TestTruthA(t *testing.T) { _ = os.WriteFile(os.Getenv(\"" + truth.Folder + "\")+\"/1.json\", []byte(`" + row +
		"`), 0o600) }\n"
	for name, code := range map[string]string{
		"Errorf": `func TestTruthB(t *testing.T) { t.Errorf("no") }`,
		"panic":  `func TestTruthB(t *testing.T) { panic("no") }`,
		"build":  `func TestTruthB(t *testing.T) { no() }`,
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for name, text := range map[string]string{"go.mod": "module p\n", "p_test.go": begin + code + "\n"} {
				if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := run(t.Output(), filepath.Join(folder,
				"truth.json"), "T1 a kill\n", []string{"go", "-C", folder, "test", "-vet=off", "-count=1", "."})
			if err == nil || !strings.Contains(err.Error(), "the tests failed") {
				t.Errorf("error %v", err)
			}
		})
	}
}
