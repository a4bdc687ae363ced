//go:build integration

package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
	"github.com/redquake/redquake/internal/testing/truth"
)

// TestTruthStallsOfTheGenerator stops the command twice for 400 ms beside a healthy Redis: that it missed an objective
// is not known then, unless it missed it apart from the stalls.
func TestTruthStallsOfTheGenerator(t *testing.T) {
	for _, tt := range []struct {
		name    string
		args    []string
		verdict string
		code    int

		waitForReplies bool
	}{
		{
			"limit of the p99 350 ms",
			[]string{"--rate", "1000", "--max-latency-p99", "350ms"},
			"Inconclusive",
			cli.ExitInconclusive,
			false,
		},
		{
			"at least 800/s of 10 users every 10 ms",
			[]string{"--users", "10", "--think-time", "10ms", "--min-throughput", "800"},
			"Inconclusive",
			cli.ExitInconclusive,
			false,
		},
		{"no objective", []string{"--rate", "1000"}, "Inconclusive", cli.ExitInconclusive, false},
		{"limit of the p99 2 s", []string{"--rate", "1000", "--max-latency-p99", "2s"}, "Pass", cli.ExitOK, false},
		{
			"limit of the p99 100 ms, the network needs 150 ms",
			[]string{"--rate", "200", "--max-latency-p99", "100ms", "--added-latency", "150ms"},
			"Fail",
			cli.ExitFailed,
			false,
		},
		{
			"limit of the p99 250 ms of 10 users, the network needs 150 ms",
			[]string{"--users", "10", "--max-latency-p99", "250ms", "--added-latency", "150ms"},
			"Pass",
			cli.ExitOK,
			true,
		},
		{
			"at least 2000/s, but 1000/s are asked",
			[]string{"--rate", "1000", "--min-throughput", "2000"},
			"Fail",
			cli.ExitFailed,
			false,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := redistest.NewServer(t, redistest.Options{})
			lateness := await.Lateness()
			p := begin(t, nil, append([]string{"load", "--address", server.Address(), "--duration", "4s", "-o", "json"},
				tt.args...)...)
			awaitServed(t, server)
			for range 2 {
				for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
					if err := p.cmd.Process.Signal(signal); err != nil {
						t.Fatal(err)
					}
					await.Pass(400*time.Millisecond, "the length of a stall, and the time between two")
				}
			}
			code := p.code(t)
			late := lateness()
			r := clitest.Result(t, p.out.String())
			doubt := "no doubt"
			for _, d := range r.Doubts {
				doubt = d.Reason
			}
			wantDoubt := map[bool]string{true: impact.GeneratorStalled, false: "no doubt"}[tt.verdict == "Inconclusive"]
			s := r.Total.Stalled
			if s == nil || s.Length < result.Seconds(700*time.Millisecond) || s.Count < 2 {
				t.Fatalf("the stalls are %+v, want 0.8 s at least", s)
			}
			// A busy machine keeps the command from running even longer, and Redis, too: then the run may be unable to tell, but
			// must not tell what is wrong.
			disturbed := s.Length > result.Seconds(1200*time.Millisecond) || late > 200*time.Millisecond
			if doubt == impact.GeneratorStarved { // it waited for longer than it was stopped: the machine is that busy
				disturbed = true
			}
			right := r.Verdict == tt.verdict && doubt == wantDoubt && code == tt.code
			truth.Report(t, "T11", "redquake load does not run for 0.8 s; "+tt.name, tt.verdict+", "+wantDoubt,
				fmt.Sprintf("%s, %s, not run for %.1f s, the machine late by %.1f s", r.Verdict, doubt, s.Length.Seconds(),
					late.Seconds()),
				right || disturbed && r.Verdict == "Inconclusive" && code == cli.ExitInconclusive)
			if disturbed {
				return
			}
			if r.Latency == result.ResponseTime && s.Latency.P99 > r.Total.Latency.P99-result.Seconds(200*time.Millisecond) {
				t.Errorf("the p99 is %v, and at least %v, of which stalls are 400 ms", r.Total.Latency.P99.Seconds(),
					s.Latency.P99.Seconds())
			}
			if g := r.LongestGap; g == nil || g.AtLeast > result.Seconds(250*time.Millisecond) {
				t.Errorf("the gap is %s, want one that is not proven for 400 ms", clitest.GapText(g))
			}
			// Users of a closed loop who wait for replies for most of their time are limited by the network, which is said
			// first.
			b, limits := r.Bottleneck, bottleneck.LoadGenerator
			if tt.waitForReplies {
				limits = bottleneck.Network
			}
			if b == nil || b.Component != string(limits) || !strings.Contains(b.Evidence, "this process did not run for ") {
				t.Errorf("the bottleneck is %+v, want %s, and that the load generator did not run", b, limits)
			}
			t.Logf("%s: %s\np99 %v, at least %v; bottleneck %+v", r.Verdict, r.Why, r.Total.Latency.P99.Seconds(),
				s.Latency.P99.Seconds(), r.Bottleneck)
		})
	}
}
