package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/cmd/redquake/internal/loadflags"
	"github.com/redquake/redquake/cmd/redquake/internal/reports"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

const inMemory = "redis:6379"

// noRealTime is the resource use of a process in virtual time: that of the test's process counts in real seconds, in
// which other programs may hold it up.
func noRealTime() record.AgentUse { return record.AgentUse{WaitedSeconds: -1} }

// loadInMemory does what `redquake load` does with the flags, in the bubble's time, against a Redis in memory at
// address inMemory.
func loadInMemory(
	ctx context.Context, t *testing.T, network *memnet.Network, args ...string,
) (out, stderr string, err error) {
	t.Helper()
	t.Setenv(loadflags.PasswordVariable, "")
	var flags loadflags.Flags
	set := pflag.NewFlagSet("load", pflag.ContinueOnError)
	flags.Register(set)
	if err := set.Parse(append([]string{"--address", inMemory, "--topology", "Standalone", "-o", "json"},
		args...)); err != nil {
		t.Fatal(err)
	}
	if err := flags.Check(); err != nil {
		t.Fatal(err)
	}
	var written, said bytes.Buffer
	io := cli.Streams{In: strings.NewReader(""), Out: &written, Err: &said}
	test, err := flags.LoadTest(io)
	if err != nil {
		t.Fatal(err)
	}
	limits, err := limitsOf(&flags, &test.Spec)
	if err != nil {
		t.Fatal(err)
	}
	plan, notes, err := flags.Plan(test)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := engine.New(plan, 0, append(flags.Options(), engine.WithDialer(network.Dial))...)
	if err != nil {
		t.Fatal(err)
	}
	to, err := open(&flags)
	if err != nil {
		t.Fatal(err)
	}
	err = runLoad(ctx, watchedRunner{runner, noRealTime}, plan, limits, notes, to, io)
	return written.String(), said.String(), err
}

// Four requests in flight, each of 100 ms, are 40/s: the search finds exactly this rate, with the expected trials.
func TestSearchFindsTheCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New()
		memredis.Start(t, network, inMemory, memredis.Options{})
		out, stderr, err := loadInMemory(t.Context(), t, network, "--search", "20:1000", "--users", "4", "--added-latency",
			"100ms", "--max-error-rate", "5%",
			"--search-trial", "2s", "--search-precision", "20%")
		if err != nil {
			t.Fatal(err)
		}
		r := clitest.Result(t, out)
		s := r.Search
		if s == nil || !s.Done || s.Rate != 40 {
			t.Fatalf("the search is %+v, want 40/s\n%s", s, stderr)
		}
		checkTrials(t, s.Trials, 20, 40, 80, 80, 57, 57, 48, 48, 40)
		if r.Total.Throughput != 40 || r.Total.Dropped+r.Total.Failed+r.Total.Unknown != 0 {
			t.Errorf("the figures are %+v, want those of 40/s", r.Total)
		}
		if l := r.Total.Latency; l == nil || time.Duration(l.P50).Round(time.Millisecond) != 100*time.Millisecond ||
			time.Duration(l.Max) > 105*time.Millisecond {
			t.Errorf("latency is %+v, want 100 ms, and 5 ms more at most for the phase at which the last trial began",
				r.Total.Latency)
		}
		if !strings.Contains(stderr, "trial 2: 40/s meets the objectives\n") ||
			!strings.Contains(stderr, "trial 3: 80/s misses: ") {
			t.Errorf("stderr has no trial:\n%s", stderr)
		}
		if len(r.Anomalies) > 0 || r.LongestGap != nil && r.LongestGap.Open {
			t.Errorf("anomalies %v, gap %+v: want none for a search", r.Anomalies, r.LongestGap)
		}
	})
}

// checkTrials compares the rates of the trials, and checks that exactly those up to the result met the objectives.
func checkTrials(t *testing.T, trials []result.Trial, want ...float64) {
	t.Helper()
	var rates []float64
	for _, trial := range trials {
		rates = append(rates, trial.Rate)
		if trial.Met != (trial.Missed == "") || trial.Met != (trial.Rate <= 40) {
			t.Errorf("trial %+v", trial)
		}
	}
	if len(rates) != len(want) {
		t.Fatalf("the rates were %v, want %v", rates, want)
	}
	for i := range want {
		if rates[i] != want[i] {
			t.Fatalf("the rates were %v, want %v", rates, want)
		}
	}
}

// A server that takes 1 ms for a command serves 1000/s, of which the probe has 100: a search by p99 finds a rate below,
// within its precision.
func TestSearchOfABusyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New()
		memredis.Start(t, network, inMemory, memredis.Options{Cost: time.Millisecond})
		out, stderr, err := loadInMemory(t.Context(), t, network, "--search", "100:10000", "--max-latency-p99", "20ms",
			"--search-trial", "2s", "--search-precision", "10%")
		if err != nil {
			t.Fatal(err)
		}
		if s := clitest.Result(t, out).Search; s == nil || !s.Done || s.Rate > 900 || s.Rate < 800 {
			t.Errorf("the search is %+v, want 800 to 900/s\n%s", s, stderr)
		}
	})
}

// An open loop sends exactly the scheduled requests, with the latencies of the server.
func TestOpenLoopInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New()
		memredis.Start(t, network, inMemory, memredis.Options{})
		out, _, err := loadInMemory(t.Context(), t, network, "--rate", "200", "--warm-up", "1s", "--duration", "2s",
			"--added-latency", "1ms", "--prefill", "--keys", "10")
		if err != nil {
			t.Fatal(err)
		}
		r := clitest.Result(t, out)
		if r.Outcome != result.Finished || r.Total.Requests != 400 || r.Total.OK != 400 || r.Total.Throughput != 200 {
			t.Errorf("the run is %+v, want 400 successes in 2 s, without the 200 of the warm-up", r.Total)
		}
		if r.Elapsed != result.Seconds(3*time.Second) || r.Measured != result.Seconds(2*time.Second) {
			t.Errorf("elapsed %v, measured %v; want 3 s and 2 s", r.Elapsed, r.Measured)
		}
		if l := r.Total.Latency; l == nil || l.P50 != result.Seconds(time.Millisecond) || l.P99 != l.P50 ||
			r.Total.Service == nil || r.Total.Service.P50 != l.P50 {
			t.Errorf("latency %+v, service %+v, want 1 ms", l, r.Total.Service)
		}
	})
}

// The verdict, the objectives and the exit code agree, for 200 requests/s that are answered within 1 ms.
func TestVerdictInVirtualTime(t *testing.T) {
	for name, tt := range map[string]struct {
		args    []string
		verdict string
		code    int
		met     []*bool
	}{
		"without objectives": {nil, "Pass", cli.ExitOK, nil},
		"all met": {
			[]string{
				"--min-throughput", "200", "--max-latency-p50", "1ms", "--max-latency-p99", "1001us", "--max-latency-p999",
				"2ms", "--max-error-rate", "0%",
			},
			"Pass",
			cli.ExitOK,
			[]*bool{new(true), new(true), new(true), new(true), new(true)},
		},
		"one missed": {
			[]string{"--max-latency-p99", "900us", "--max-error-rate", "0%"},
			"Fail",
			cli.ExitFailed,
			[]*bool{new(false), new(true)},
		},
		"too slow a generator": {[]string{"--min-throughput", "200.1"}, "Fail", cli.ExitFailed, []*bool{new(false)}},
		"timeout": {
			[]string{"--timeout", "10ms", "--added-latency", "20ms"},
			"Fail",
			cli.ExitFailed,
			[]*bool{new(false)},
		},
		"no lost write": {
			[]string{"--max-lost-writes", "0", "--verify-writes"},
			"Pass",
			cli.ExitOK,
			[]*bool{new(true)},
		},
		"search cut off": {
			[]string{"--search", "20:1000", "--max-error-rate", "5%", "--search-trial", "2s", "--duration", "20s"},
			"Inconclusive",
			cli.ExitInconclusive,
			[]*bool{new(true)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := memnet.New()
				memredis.Start(t, network, inMemory, memredis.Options{})
				args := append([]string{"--added-latency", "1ms"}, tt.args...)
				if !slices.Contains(args, "--search") {
					args = append(args, "--rate", "200", "--duration", "2s")
				}
				out, _, err := loadInMemory(t.Context(), t, network, args...)
				code := cli.ExitOK
				if f, ok := errors.AsType[*cli.Failure](err); ok {
					code = f.Code
				} else if err != nil {
					t.Fatal(err)
				}
				r := clitest.Result(t, out)
				if r.Verdict != tt.verdict || code != tt.code || r.Why == "" {
					t.Errorf("%s, exit code %d: %s; want %s and %d", r.Verdict, code, r.Why, tt.verdict, tt.code)
				}
				var met []*bool
				for _, o := range r.Objectives {
					met = append(met, o.Met)
					if (o.Met == nil) != (o.Actual == nil) {
						t.Errorf("objective %+v", o)
					}
				}
				if diff := cmp.Diff(tt.met, met); diff != "" {
					t.Errorf("objectives met (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// An interrupt ends the load within a second; the measurements are written.
func TestInterruptInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New()
		memredis.Start(t, network, inMemory, memredis.Options{})
		ctx, interrupt := context.WithCancel(t.Context())
		began := time.Now()
		const after = 2950 * time.Millisecond
		time.AfterFunc(after, interrupt)
		out, _, err := loadInMemory(ctx, t, network, "--rate", "100", "--duration", "1h", "--verify-writes", "--verify-share",
			"50%")
		if f, ok := errors.AsType[*cli.Failure](err); !ok || f.Code != cli.ExitInterrupted {
			t.Fatalf("%v, want exit code %d", err, cli.ExitInterrupted)
		}
		if took := time.Since(began); took < after || took > after+time.Second {
			t.Errorf("it took %v to end", took-after)
		}
		r := clitest.Result(t, out)
		if r.Outcome != result.Interrupted || time.Duration(r.Elapsed) != after || r.Planned != result.Seconds(time.Hour) ||
			r.Total.OK != 295 {
			t.Errorf("outcome %s after %v of %v, %d requests; want 295 of the 2.95 s", r.Outcome, r.Elapsed, r.Planned,
				r.Total.OK)
		}
		if v := r.Verification; v == nil || v.Unread == "" || v.Lost != nil {
			t.Errorf("the verification is %+v, want one with the reason why it is missing", v)
		}
	})
}

// Without a listener the load fails after --wait, 30 s by default.
func TestLoadWithoutServer(t *testing.T) {
	for wait, flags := range map[time.Duration][]string{
		0:                {"--wait", "0"},
		12 * time.Second: {"--wait", "12s"},
		30 * time.Second: nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			out, progress, err := loadInMemory(t.Context(), t, memnet.New(), append([]string{"--duration", "1s"}, flags...)...)
			f, ok := errors.AsType[*cli.Failure](err)
			if !ok || f.Code != cli.ExitError || out != "" ||
				!strings.HasPrefix(f.Error(), "TargetUnreachable: "+inMemory+" is not ready: ") {
				t.Errorf("%v, stdout %q", err, out)
			}
			if took := time.Since(began); took < wait || took > wait+time.Second {
				t.Errorf("it took %v, want %v", took, wait)
			}
			if n := strings.Count(progress, fmt.Sprintf("waiting up to %s: %s is not ready: ", wait, inMemory)); wait > 0 &&
				n != 1 {
				t.Errorf("it said %d times that it waits:\n%s", n, progress)
			}
		})
	}
}

// A Redis that starts within --wait is loaded.
func TestLoadBeforeItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New()
		server := memredis.Start(t, network, inMemory, memredis.Options{})
		server.Kill()
		time.AfterFunc(28*time.Second, server.Restart)
		out, progress, err := loadInMemory(t.Context(), t, network, "--duration", "1s", "--rate", "100")
		if err != nil {
			t.Fatalf("%v\n%s", err, progress)
		}
		if r := clitest.Result(t, out); r.Total.OK != 100 {
			t.Errorf("%d requests, want 100", r.Total.OK)
		}
	})
}

// If Redis crashes during the run, the load continues and counts errors.
func TestRedisCrashInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New()
		server := memredis.Start(t, network, inMemory, memredis.Options{})
		time.AfterFunc(1501*time.Millisecond, server.Kill)
		out, _, err := loadInMemory(t.Context(), t, network, "--rate", "200", "--duration", "3s", "--min-success", "0")
		if err != nil {
			t.Fatal(err)
		}
		r := clitest.Result(t, out)
		if bad := r.Total.Failed + r.Total.Unknown + r.Total.Dropped; r.Total.OK != 300 || bad != 300 || len(r.Errors) == 0 {
			t.Errorf("total %+v, errors %v; want 300 successes and 300 errors", r.Total, r.Errors)
		}
		if g := r.LongestGap; g == nil || !g.Open || time.Duration(g.Length) != 3*time.Second-1497500*time.Microsecond {
			t.Errorf("gap %+v, want one from 1.4975 s to the end", g)
		}
	})
}

// The record of a load, also of one that was interrupted, is what `redquake results` reads: it has the same requests.
func TestRecordOfALoad(t *testing.T) {
	for name, ends := range map[string]time.Duration{"finished": time.Hour, "interrupted": 3500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "run.record")
			if err := os.WriteFile(file, bytes.Repeat([]byte("longer than the record\n"), 10_000), 0o600); err != nil {
				t.Fatal(err)
			}
			var run *result.Load
			synctest.Test(t, func(t *testing.T) {
				network := memnet.New()
				memredis.Start(t, network, inMemory, memredis.Options{})
				ctx, cancel := context.WithTimeout(t.Context(), ends)
				defer cancel()
				out, _, _ := loadInMemory(ctx, t, network, "--rate", "100", "--duration", "5s", "--record", file)
				run = clitest.Result(t, out)
			})
			out := clitest.Output(t, reports.NewResults, file, "--every", "1s", "-o", "json")
			var course result.Course
			if err := json.Unmarshal([]byte(out), &course); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			total := uint64(0)
			for _, row := range course.Rows {
				total += row.OK
			}
			if total == 0 || total != run.Total.OK || !course.Start.Equal(run.Start) || course.Run != "load" {
				t.Errorf("the load had %d successes from %v, the record of %q has %d from %v", run.Total.OK, run.Start, course.Run,
					total, course.Start)
			}
		})
	}
}
