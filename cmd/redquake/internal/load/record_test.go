package load

import (
	"context"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/cmd/redquake/internal/archive"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/cmd/redquake/internal/reports"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/page"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// recordedRuns are loads with what a record alone does not tell: which part was measured, which operation had which
// part, what was required, and what is in doubt. The server does not run from second 2 to 3.5.
var recordedRuns = map[string]struct {
	args      []string
	load      string        // in a file, instead of args
	interrupt time.Duration // 0 = the load ends by itself
	verdict   report.Verdict
}{
	"an outage in the warm-up": {
		args:    []string{"--rate", "200", "--warm-up", "4s", "--duration", "2s"},
		verdict: report.Pass,
	},
	"a benchmark in turns":    {load: "{rate: 300, rampUp: 1s, warmUp: 4s, duration: 3s}", verdict: report.Pass},
	"a benchmark by requests": {load: "{rate: 300, requests: 1200}", verdict: report.Fail},
	"met objectives": {
		args: []string{
			"--users", "4", "--added-latency", "10ms", "--warm-up", "4s", "--duration", "2s",
			"--max-latency-p99", "1s", "--min-throughput", "100",
		},
		verdict: report.Pass,
	},
	"missed objectives": {
		args:    []string{"--rate", "200", "--duration", "5s", "--max-latency-p99", "1s", "--max-error-rate", "0%"},
		verdict: report.Fail,
	},
	"a search": {
		args: []string{
			"--search", "20:1000", "--users", "4", "--added-latency", "100ms", "--warm-up", "4s",
			"--max-error-rate", "5%", "--search-trial", "2s", "--search-precision", "20%",
		},
		verdict: report.Pass,
	},
	"an interrupted load": {
		args:      []string{"--rate", "200", "--duration", "10s"},
		interrupt: 5500 * time.Millisecond,
		verdict:   report.Inconclusive,
	},
}

// recordRun runs one of recordedRuns, which writes its record and its report, and returns its result in JSON.
func recordRun(t *testing.T, name, record, own string) (out string) {
	t.Helper()
	of := recordedRuns[name]
	args := append([]string{"--record", record, "--report", own}, of.args...)
	if of.load != "" {
		file := filepath.Join(t.TempDir(), "test.yaml")
		text := strings.Replace(clitest.LoadTestYAML, `{commands: [{name: get, command: [GET, "{key}"]}]}`,
			"{benchmark: {tests: [set, get, incr]}}", 1)
		if err := os.WriteFile(file, []byte(strings.Replace(text, "{users: 10, duration: 30s}", of.load, 1)),
			0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-f", file)
	}
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New()
		server := memredis.Start(t, network, inMemory, memredis.Options{})
		time.AfterFunc(2*time.Second, server.Stop)
		time.AfterFunc(3500*time.Millisecond, server.Continue)
		ctx := t.Context()
		if of.interrupt > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, of.interrupt)
			defer cancel()
		}
		var stderr string
		if out, stderr, _ = loadInMemory(ctx, t, network, args...); out == "" {
			t.Fatalf("no result: %s", stderr)
		}
	})
	return out
}

// The report of a record is that of the run which wrote it, in each form, byte by byte. Both have the same name here,
// as the report of a record is called like its file.
func TestReportOfARecordIsThatOfItsRun(t *testing.T) {
	for name, of := range recordedRuns {
		for _, form := range page.Forms {
			t.Run(name+" "+form.Name, func(t *testing.T) {
				dir := t.TempDir()
				record, own := filepath.Join(dir, thisMachine+".record"), filepath.Join(dir, "own"+form.Extension)
				recordRun(t, name, record, own)
				want, err := os.ReadFile(own)
				if err != nil {
					t.Fatal(err)
				}
				got := clitest.Output(t, reports.NewReport, record, "-o", form.Name)
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("the report of the record differs (-own +of the record):\n%s", diff)
				}
				if form.Name == "junit" {
					checkJUnit(t, got, of.verdict)
				}
			})
		}
	}
}

// checkJUnit checks that a run which passed has no error, that another one has some, and that each has a message.
func checkJUnit(t *testing.T, text string, verdict report.Verdict) {
	t.Helper()
	var suites struct {
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
	}
	if err := xml.Unmarshal([]byte(text), &suites); err != nil {
		t.Fatal(err)
	}
	if passed := suites.Failures+suites.Errors == 0; passed != (verdict == report.Pass) ||
		(suites.Errors > 0) != (verdict == report.Inconclusive) || strings.Contains(text, `message=""`) {
		t.Errorf("%d failures and %d errors with verdict %s:\n%s", suites.Failures, suites.Errors, verdict, text)
	}
}

// comparedRun are the figures of a run that are compared.
func comparedRun(t *testing.T, saved string) experiment.Run {
	t.Helper()
	kept, err := archive.ReadRun(strings.NewReader(saved))
	if err != nil {
		t.Fatal(err)
	}
	run, err := kept.Figures()
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// A comparison has the same figures of a run from its result in JSON and from its record, and drops the same runs.
func TestComparedRecordIsItsRun(t *testing.T) {
	for name, of := range recordedRuns {
		t.Run(name, func(t *testing.T) {
			record := filepath.Join(t.TempDir(), "run.record")
			want := comparedRun(t, recordRun(t, name, record, filepath.Join(t.TempDir(), "own.json")))
			text, err := os.ReadFile(record)
			if err != nil {
				t.Fatal(err)
			}
			got := comparedRun(t, string(text))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the run of the record differs (-of the result +of the record):\n%s", diff)
			}
			if (got.Inconclusive != "") != (of.verdict == report.Inconclusive) {
				t.Errorf("inconclusive: %q, with verdict %s", got.Inconclusive, of.verdict)
			}
		})
	}
}
