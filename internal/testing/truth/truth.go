// Package truth collects what tests know to be true beside what Redquake reported: `make truth` prints it as a table.
package truth

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
)

// Folder is the environment variable that names the folder to which Report writes a file per row; without it, nothing
// is written.
const Folder = "REDQUAKE_TRUTH_OUT"

// Row is one scenario: what was true, what was reported (a figure, or the doubt that says why there is none), and
// whether the report is right.
type Row struct {
	ID       string `json:"id"` // T1, T2, ...
	Scenario string `json:"scenario"`
	Truth    string `json:"truth"`
	Reported string `json:"reported"`
	OK       bool   `json:"ok"`
}

// Report fails the test unless the report is right, and writes the row. A scenario with several figures calls it once
// for each.
// The tests of scenarios are called TestTruth..., so that `make truth` finds them; it fails unless the rows are those
// of hack/tools/truthtable/rows.txt.
func Report(t testing.TB, id, scenario, truth, reported string, ok bool) {
	t.Helper()
	if !ok {
		t.Errorf("%s, %s: reported %s, expected %s", id, scenario, reported, truth)
	}
	folder := os.Getenv(Folder)
	if folder == "" {
		return
	}
	text, err := json.Marshal(Row{
		ID:       id,
		Scenario: scenario,
		Truth:    truth,
		Reported: reported,
		OK:       ok,
	})
	if err != nil {
		t.Fatal(err)
	}
	// A name of its own for each row: two scenarios may have names that are equal as those of files.
	file, err := os.CreateTemp(folder, id+"-*.json")
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}
