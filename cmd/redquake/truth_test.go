package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/truth"
)

// writesFailed is the record of a run of 30 s with 100 reads and 100 writes per second, of which the writes fail from
// 12 s to 15 s.
func writesFailed(t *testing.T) []byte {
	t.Helper()
	series := merged.New("uid", clitest.Start, time.Second, []string{"set", "get"}, 1)
	series.SetReadOnly([]bool{false, true})
	for i := range int64(30) {
		begin := i * int64(time.Second)
		iv := &record.Interval{
			Index: i, Pods: 1, Ops: make([]record.Op, 2), FirstOK: begin, LastOK: begin + int64(time.Second) - 1, FirstError: -1,
			LastError: -1,
		}
		iv.Ops[0].OK, iv.Ops[1].OK = 100, 100
		if i >= 12 && i < 15 {
			iv.Ops[0].OK, iv.Ops[0].Fail, iv.FirstError, iv.LastError = 0, 100, iv.FirstOK, iv.LastOK
		}
		if i == 15 {
			gap := record.Gap{From: 12 * int64(time.Second), To: 15 * int64(time.Second)}
			iv.PartGaps = []record.PartGap{{Part: record.Writes, Gap: gap}, {Part: record.OpPart(0), Gap: gap}}
		}
		if err := series.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	series.Finish(0)
	data, err := series.Encode(0)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestTruthWritesOfARecordFail: the reads of a run hide its writes, which fail, from the times without a success of the
// load.
func TestTruthWritesOfARecordFail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run")
	if err := os.WriteFile(file, writesFailed(t), 0o600); err != nil {
		t.Fatal(err)
	}
	for operation, want := range map[string]string{
		"":    "writes         +12 s  3 s − 10 ms",
		"set": "set            +12 s  3 s − 10 ms",
		"get": "",
	} {
		code, out, stderr := called("redquake", "results", file, "--operation", operation)
		_, below, _ := strings.Cut(out, "\nNo success of     At          For\n")
		below = strings.TrimSpace(below)
		silent := strings.Contains(out, "No success  ") || strings.Contains(out, "No success\n")
		truth.Report(t, "T3", "redquake results --operation '"+operation+"', SET fails for 3 s", want, below, below == want)
		if code != cli.ExitOK || stderr != "" || silent != (operation == "set") {
			t.Errorf("exit code %d, stderr %q, stdout\n%s", code, stderr, out)
		}
	}
}
