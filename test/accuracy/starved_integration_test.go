//go:build integration

package accuracy

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/redquake/redquake/internal/result/comparisons"
	"github.com/redquake/redquake/internal/result/document"
	"github.com/redquake/redquake/internal/testing/redistest"
)

const (
	starvationOut         = "REDQUAKE_STARVATION_OUT"         // the file of the result
	starvationCommand     = "REDQUAKE_STARVATION_COMMAND"     // redquake
	starvationExperiments = "REDQUAKE_STARVATION_EXPERIMENTS" // how many
)

// starved is one load that shared its CPU with busy programs.
type starved struct {
	Load       string   `json:"load"`
	Beside     int      `json:"beside"` // busy programs
	Throughput float64  `json:"throughputPerSecond"`
	AtMost     float64  `json:"throughputAtMostPerSecond"`
	P99        float64  `json:"p99Seconds"`
	P99AtLeast float64  `json:"p99AtLeastSeconds"`
	Verdict    string   `json:"verdict"`
	Doubts     []string `json:"doubts"`
}

// starvedCompared is an experiment of which both cells are the same Redis.
type starvedCompared struct {
	Load    string   `json:"load"`
	Beside  [2]int   `json:"beside"` // busy programs beside each cell's load generator
	Figures []string `json:"figures"`
	Wrong   bool     `json:"wrong"` // Worse or Better
}

// starvedLoads are the loads, in flags of the command line.
var starvedLoads = []struct {
	name  string
	open  bool
	flags []string
}{
	{"closed loop, 4 users", false, []string{"--users", "4"}},
	{"closed loop, 1 user", false, []string{"--users", "1"}},
	{"open loop, 2,000/s", true, []string{"--rate", "2000"}},
}

// TestMeasureStarvation runs `redquake load` on a CPU that it shares with 0, 1 and 3 busy programs, with Redis on
// another one: what the figures say of Redis without a doubt must hold for the load that had its CPU for itself, and
// `redquake compare` must find no difference between the same Redis and itself.
func TestMeasureStarvation(t *testing.T) {
	out := os.Getenv(starvationOut)
	if out == "" {
		t.Skip("a measurement: make starvation")
	}
	if runtime.NumCPU() < 2 {
		t.Skip("the load generator and Redis need a CPU each")
	}
	server := favoured(t, redistest.NewServer(t, redistest.Options{}))
	pin(t, server.pid, 1)
	var all []starved
	for range 3 {
		for load := range starvedLoads {
			for _, beside := range []int{0, 1, 3} {
				t.Run("load", func(t *testing.T) {
					all = append(all, starve(t, server, load, beside, "4s", filepath.Join(t.TempDir(), "result.json")))
				})
			}
		}
	}
	t.Logf("\n%s", starvedTable(all))
	judgeStarved(t, all)
	compared := compareStarved(t, server)
	wrong := 0
	for _, c := range compared {
		if c.Wrong {
			wrong++
			t.Errorf("the same Redis, %s beside %v busy programs: %v", c.Load, c.Beside, c.Figures)
		}
	}
	t.Logf("%d experiments with the same Redis in both cells: %d tell a difference", len(compared), wrong)
	writeJSON(t, out, map[string]any{"loads": all, "experiments": compared})
}

// starve runs a load beside busy programs, and keeps its result in a file.
func starve(t *testing.T, server stoppable, load, beside int, duration, file string) starved {
	t.Helper()
	one := starvedLoads[load]
	burn(t, beside, 0)
	args := append([]string{"load", "--address", server.Address(), "--duration", duration, "--keys", "1000", "-o", "json"},
		one.flags...)
	cmd := exec.Command("taskset", append([]string{"-c", "0", os.Getenv(starvationCommand)}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() > 2) {
		t.Fatalf("redquake load: %v\n%s", err, stderr.String())
	}
	r, err := document.DecodeLoad(text)
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s := starved{
		Load:       one.name,
		Beside:     beside,
		Throughput: r.Total.Throughput,
		AtMost:     r.Total.Throughput,
		Verdict:    r.Verdict,
	}
	if q := r.Total.Latency; q != nil {
		s.P99, s.P99AtLeast = q.P99.Seconds(), q.P99.Seconds()
	}
	if d := r.Total.Stalled; d != nil {
		s.AtMost = max(s.AtMost, d.Throughput)
		if d.Latency != nil {
			s.P99AtLeast = min(s.P99AtLeast, d.Latency.P99.Seconds())
		}
	}
	for _, d := range r.Doubts {
		s.Doubts = append(s.Doubts, d.Reason)
	}
	return s
}

// judgeStarved holds what is said without a doubt against the median of the loads that had their CPU for themselves.
// These vary by some percent.
func judgeStarved(t *testing.T, all []starved) {
	t.Helper()
	const varies = 1.15
	for _, load := range starvedLoads {
		var throughputs, p99s []float64
		for _, s := range all {
			if s.Load == load.name && s.Beside == 0 {
				throughputs, p99s = append(throughputs, s.Throughput), append(p99s, s.P99)
			}
		}
		slices.Sort(throughputs)
		slices.Sort(p99s)
		throughput, p99 := throughputs[len(throughputs)/2], p99s[len(p99s)-1]
		for _, s := range all {
			if s.Load != load.name || len(s.Doubts) > 0 {
				continue
			}
			if s.AtMost*varies < throughput {
				t.Errorf("%s beside %d: at most %.0f/s without a doubt, %.0f/s alone", s.Load, s.Beside, s.AtMost, throughput)
			}
			if load.open && s.P99AtLeast > varies*p99 {
				t.Errorf("%s beside %d: the p99 is at least %.3f ms without a doubt, %.3f ms alone", s.Load, s.Beside,
					1e3*s.P99AtLeast, 1e3*p99)
			}
		}
	}
}

func starvedTable(all []starved) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "LOAD\tBESIDE\tTHROUGHPUT\tAT MOST\tP99\tAT LEAST\tVERDICT\tDOUBTS")
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%d\t%.0f/s\t%.0f/s\t%.3f ms\t%.3f ms\t%s\t%s\n", s.Load, s.Beside, s.Throughput, s.AtMost,
			1e3*s.P99, 1e3*s.P99AtLeast, s.Verdict, strings.Join(s.Doubts, ", "))
	}
	_ = w.Flush()
	return b.String()
}

// compareStarved compares the same Redis with itself in experiments of four rounds, in which only the number of busy
// programs beside the load generator differs.
func compareStarved(t *testing.T, server stoppable) (list []starvedCompared) {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv(starvationExperiments))
	if err != nil {
		t.Fatalf("%s: %v", starvationExperiments, err)
	}
	for i := range n {
		beside := [][2]int{{0, 3}, {0, 1}, {1, 3}, {3, 0}}[i%4]
		load := []int{0, 2}[i/4%2]
		t.Run(fmt.Sprintf("experiment %d", i), func(t *testing.T) {
			dir := t.TempDir()
			args := []string{"compare", "-o", "json"}
			for round := range 4 {
				for cell, k := range beside {
					file := filepath.Join(dir, fmt.Sprintf("%d-%d.json", cell, round))
					t.Run("load", func(t *testing.T) { starve(t, server, load, k, "2s", file) })
				}
			}
			for cell := range beside {
				args = append(args, fmt.Sprintf("%d=%s", cell, filepath.Join(dir, fmt.Sprintf("%d-*.json", cell))))
			}
			text, err := exec.Command(os.Getenv(starvationCommand), args...).Output()
			var c comparisons.Comparisons
			if err != nil || json.Unmarshal(text, &c) != nil {
				t.Fatalf("redquake %v: %v\n%s", args, err, text)
			}
			one := starvedCompared{Load: starvedLoads[load].name, Beside: beside}
			for _, f := range c.Comparisons {
				if f.Primary {
					one.Figures = append(one.Figures, fmt.Sprintf("%s: %s", f.Figure, f.Verdict))
					one.Wrong = one.Wrong || f.Verdict == "Worse" || f.Verdict == "Better"
				}
			}
			list = append(list, one)
		})
	}
	return list
}
