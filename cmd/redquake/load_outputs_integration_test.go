//go:build integration

package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/redquake/redquake/cmd/redquake/internal/archive"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// Whoever reads the progress or the result may go away, and the terminal may be closed: what was measured is written
// wherever it still can be.
func TestLoadOutlivesItsReaders(t *testing.T) {
	t.Parallel()
	const finishes, endless = "6s", "1h"
	// A load that was started by nohup goes on when the terminal is closed. These are not, although the tests may be.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	for name, tt := range map[string]struct {
		duration   string
		gone       int // the stream whose reader goes away; 0 = none
		signals    []os.Signal
		code       int
		unwritable bool // the result on stdout
	}{
		"nobody reads the progress": {duration: finishes, gone: 2},
		"nobody reads the result":   {duration: finishes, gone: 1, code: cli.ExitError, unwritable: true},
		"the terminal is closed": {
			duration: endless,
			gone:     2,
			signals:  []os.Signal{syscall.SIGHUP, syscall.SIGHUP},
			code:     cli.ExitInterrupted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.NewServer(t, redistest.Options{})
			dir := t.TempDir()
			record, report := filepath.Join(dir, "run.record"), filepath.Join(dir, "report.json")
			cmd := exec.Command(os.Args[0], "load", "--address", server.Address(), "--rate", "500", "--duration", tt.duration,
				"-o", "json", "--record", record, "--report", report)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), asCommand + "=1"}
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			var out, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &stderr
			if tt.gone == 1 {
				cmd.Stdout = writer
			} else {
				cmd.Stderr = writer
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			_ = writer.Close()
			if tt.gone == 2 { // like `head -1`
				if _, err := bufio.NewReaderSize(reader, 16).ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			_ = reader.Close()
			awaitServed(t, server)
			for _, s := range tt.signals {
				if err := cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			_ = cmd.Wait()
			// on a busy machine the verdict may be Inconclusive
			code := cmd.ProcessState.ExitCode()
			if code != tt.code && !(tt.code == cli.ExitOK && code == cli.ExitInconclusive) {
				t.Errorf("%v, want exit code %d; stderr\n%s", cmd.ProcessState, tt.code, stderr.String())
			}
			if !tt.unwritable {
				want := result.Finished
				if len(tt.signals) > 0 {
					want = result.Interrupted
				}
				if r := clitest.Result(t, out.String()); r.Total.OK == 0 || r.Outcome != want {
					t.Errorf("%s, %d successes", r.Outcome, r.Total.OK)
				}
			}
			saved, err := os.Open(record)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = saved.Close() }()
			if run, err := archive.ReadRun(saved); err != nil || run.Series == nil {
				t.Errorf("the record: %v", err)
			}
			if text, err := os.ReadFile(report); err != nil || !bytes.Contains(text, []byte(`"figures"`)) {
				t.Errorf("the report: %v\n%s", err, text)
			}
		})
	}
}
