//go:build integration

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/report"
)

// decoded reads a result in JSON.
func decoded(t *testing.T, text string) *report.LoadRun {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	r := &report.LoadRun{}
	if err := decoder.Decode(r); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return r
}

func TestLoadTable(t *testing.T) {
	t.Parallel()
	address := startRedis(t)
	code, out, stderr := run(t, nil, "load", "--address", address, "--users", "3", "--requests", "500", "--command", "INCR {key}")
	if code != 0 {
		t.Fatalf("exit code %d, stderr\n%s", code, stderr)
	}
	for _, want := range []string{
		"Outcome     Finished\n", "Target      " + address + ", redis 7.", "Load        closed loop, 3 users\n",
		"Errors      0 of 500 requests (0%)\n", "service time, counted from the send", "\nOPERATION  REQUESTS   OK", "\nincr            500  500",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if !strings.Contains(stderr, "connecting to "+address) {
		t.Errorf("stderr is\n%s", stderr)
	}
}

// An open loop sends what was asked for, and JSON is all that stands on stdout.
func TestLoadJSON(t *testing.T) {
	t.Parallel()
	address := startRedis(t)
	code, out, stderr := run(t, nil, "load", "--address", address, "--rate", "200", "--warm-up", "1s", "--duration", "2s", "-o", "json", "--prefill", "--keys", "10")
	if code != 0 {
		t.Fatalf("exit code %d, stderr\n%s", code, stderr)
	}
	r := decoded(t, out)
	if r.Outcome != report.Finished || r.Latency != report.ResponseTime || r.Total.OK != r.Total.Requests || r.Total.OK < 380 || r.Total.OK > 450 || len(r.Operations) != 2 {
		t.Errorf("the run is %+v, want about 400 good requests in 2 s, and the warm-up's 200 left out but for what was late", r)
	}
	if seconds := time.Duration(r.Elapsed).Seconds(); seconds != 3 || time.Duration(r.Measured).Seconds() != 2 {
		t.Errorf("elapsed %v, measured %v; want 3 s and 2 s", seconds, r.Measured)
	}
	if r.Total.Latency == nil || r.Total.Service == nil || r.Total.Latency.P50 <= 0 || r.Total.Latency.P50 < r.Total.Service.P50 {
		t.Errorf("latency %+v, service %+v", r.Total.Latency, r.Total.Service)
	}
	if r.Redis == nil || r.Redis.MaxMemory == 0 || r.Target.Server != "redis" {
		t.Errorf("redis is %+v, target %+v", r.Redis, r.Target)
	}
}

func TestLoadFile(t *testing.T) {
	t.Parallel()
	address := startRedis(t)
	file := filepath.Join(t.TempDir(), "test.yaml")
	if err := os.WriteFile(file, []byte(loadTestYAML), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := run(t, nil, "load", "-f", file, "--address", address, "--duration", "1s", "-o", "json")
	if code != 0 {
		t.Fatalf("exit code %d, stderr\n%s", code, stderr)
	}
	if r := decoded(t, out); r.Load != "closed loop, 10 users" || len(r.Operations) != 1 || r.Operations[0].Name != "get" || r.Total.OK == 0 {
		t.Errorf("the run is %+v", r)
	}
}

// SIGINT ends the load; what was measured is written, also in JSON, and also where the ledger can no more be read back.
func TestLoadInterrupted(t *testing.T) {
	t.Parallel()
	address := startRedis(t)
	for _, tt := range []struct {
		format   string
		verified bool
	}{{"json", false}, {"text", false}, {"json", true}, {"text", true}} {
		args := []string{"load", "--address", address, "--rate", "100", "--duration", "1h", "-o", tt.format}
		name := tt.format
		if tt.verified {
			args, name = append(args, "--verify-writes", "--verify-share", "50%"), name+", verified"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := interrupted(t, args...)
			if tt.format == "text" {
				wants := []string{"Outcome     Interrupted: what was measured until then stands\n", ", planned were 1h\n", "Errors      0 of ", "\nOPERATION"}
				if tt.verified {
					wants = append(wants, "Lost writes not known: the load did not come to its end\n", "\nledger ")
				}
				for _, want := range wants {
					if !strings.Contains(out, want) {
						t.Errorf("%q is not in\n%s", want, out)
					}
				}
				return
			}
			r := decoded(t, out)
			if elapsed := time.Duration(r.Elapsed); r.Outcome != report.Interrupted || elapsed < time.Second || elapsed > 6*time.Second || r.Planned != report.Seconds(time.Hour) {
				t.Errorf("outcome %s after %v of %v", r.Outcome, elapsed, r.Planned)
			}
			if r.Total.OK < 100 || r.Total.OK > 600 {
				t.Errorf("%d requests, want about 300", r.Total.OK)
			}
			if v := r.Verification; tt.verified != (v != nil) || v != nil && (v.Unread == "" || v.Lost != nil) {
				t.Errorf("the verification is %+v, want one that says why nothing is known", v)
			}
		})
	}
}

// interrupted runs the binary for 3 s, sends SIGINT and returns what it wrote to stdout.
func interrupted(t *testing.T, args ...string) string {
	t.Helper()
	p := begin(t, nil, args...)
	time.Sleep(3 * time.Second)
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	signalled := time.Now()
	if code := p.code(t); code != exitInterrupted {
		t.Errorf("exit code %d, want %d; stderr\n%s", code, exitInterrupted, p.err.String())
	}
	if took := time.Since(signalled); took > 5*time.Second {
		t.Errorf("it took %v to end", took)
	}
	return p.out.String()
}

// The rate of a run that its requests end is theirs, not that of whole intervals.
func TestLoadRateOfRequests(t *testing.T) {
	t.Parallel()
	address := startRedis(t)
	code, out, stderr := run(t, nil, "load", "--address", address, "--users", "1", "--think-time", "50ms", "--requests", "22", "--command", "PING", "-o", "json")
	if code != 0 {
		t.Fatalf("exit code %d, stderr\n%s", code, stderr)
	}
	r := decoded(t, out)
	if r.Total.OK != 22 || r.Measured != r.Elapsed || r.Elapsed < report.Seconds(1050*time.Millisecond) || time.Duration(r.Elapsed)%(100*time.Millisecond) == 0 {
		t.Errorf("%d requests in %v of %v", r.Total.OK, r.Measured, r.Elapsed)
	}
	if want := 22 / time.Duration(r.Elapsed).Seconds(); r.Total.Throughput < 0.999*want || r.Total.Throughput > 1.001*want {
		t.Errorf("%v/s, want %v", r.Total.Throughput, want)
	}
}

// A Redis that dies during the run makes errors, not an end: that is what the tool measures.
func TestLoadOfADyingRedis(t *testing.T) {
	t.Parallel()
	address := startRedis(t)
	p := begin(t, nil, "load", "--address", address, "--rate", "200", "--duration", "3s", "-o", "json")
	time.Sleep(1500 * time.Millisecond)
	shutDown(t, address)
	if code := p.code(t); code != 0 {
		t.Fatalf("exit code %d, stderr\n%s", code, p.err.String())
	}
	r := decoded(t, p.out.String())
	bad := r.Total.Failed + r.Total.Unknown + r.Total.Dropped
	if r.Total.OK == 0 || bad == 0 || r.LongestGap == nil || !r.LongestGap.Open || len(r.Errors) == 0 {
		t.Errorf("total %+v, gap %+v, errors %v; want successes, errors, a gap that did not end", r.Total, r.LongestGap, r.Errors)
	}
}

func TestLoadFails(t *testing.T) {
	t.Parallel()
	locked := startRedis(t, "--requirepass", "right")
	nobody := freeAddress(t)
	tests := []struct {
		name string
		env  []string
		args []string
		code int
		want string
	}{
		{"nobody there", nil, []string{"--address", nobody}, exitFailed, "redquake load: TargetUnreachable: "},
		{"no password", nil, []string{"--address", locked}, exitFailed, "redquake load: AuthenticationFailed: "},
		{"wrong password", []string{passwordVariable + "=wrong"}, []string{"--address", locked}, exitFailed, "redquake load: AuthenticationFailed: "},
		{"unknown command", []string{passwordVariable + "=right"}, []string{"--address", locked, "--command", "NOSUCH {key}"}, exitFailed, "redquake load: CommandInvalid: "},
		{"TLS to a plain server", nil, []string{"--address", locked, "--tls", "--insecure"}, exitFailed, "redquake load: TLSFailed: "},
		{"unknown flag", nil, []string{"--pasword", "x"}, exitUsage, "redquake load: unknown flag: --pasword"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, out, stderr := run(t, tt.env, append([]string{"load", "--duration", "1s"}, tt.args...)...)
			if code != tt.code || out != "" || !strings.Contains(stderr, tt.want) {
				t.Errorf("exit code %d, stdout %q, stderr\n%swant %d and %q", code, out, stderr, tt.code, tt.want)
			}
			if strings.Contains(stderr, "wrong\n") || strings.Contains(stderr, "right") {
				t.Errorf("the password is in stderr:\n%s", stderr)
			}
		})
	}
}

func TestLoadWithPassword(t *testing.T) {
	t.Parallel()
	address := startRedis(t, "--requirepass", "right", "--user", "app", "on", ">word", "~*", "+@all")
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("word\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"load", "--address", address, "--requests", "50", "--users", "2"}
	for name, run1 := range map[string]func() (int, string, string){
		"environment": func() (int, string, string) { return run(t, []string{passwordVariable + "=right"}, args...) },
		"file": func() (int, string, string) {
			return run(t, []string{passwordVariable + "=wrong"}, append(args, "--username", "app", "--password-file", file)...)
		},
	} {
		if code, out, stderr := run1(); code != 0 || !strings.Contains(out, "0 of 50 requests") {
			t.Errorf("%s: exit code %d, stdout\n%sstderr\n%s", name, code, out, stderr)
		}
	}
}

func TestLoadBadFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "test.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(loadTestYAML, "users: 10", "userz: 10", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := run(t, nil, "load", "-f", file)
	if want := "redquake load: " + file + `: unknown field "spec.load.userz"`; code != exitUsage || out != "" || !strings.HasPrefix(stderr, want) {
		t.Errorf("exit code %d, stdout %q, stderr\n%swant %d and %s", code, out, stderr, exitUsage, want)
	}
}

// What a search finds is known here, whatever the machine: four requests in flight, each of 100 ms, are 40/s.
func TestLoadSearch(t *testing.T) {
	t.Parallel()
	code, out, stderr := run(t, nil, "load", "--address", startRedis(t), "--search", "20:1000", "--users", "4", "--added-latency", "100ms", "--max-error-rate", "5%",
		"--search-trial", "2s", "--search-precision", "20%", "-o", "json")
	if code != 0 {
		t.Fatalf("exit code %d, stderr\n%s", code, stderr)
	}
	r := decoded(t, out)
	s := r.Search
	if s == nil || !s.Done || s.Rate > 40 || s.Rate < 20 || len(s.Trials) < 3 {
		t.Fatalf("the search is %+v, want 40/s or a little less", s)
	}
	// At just 40/s a busy machine leaves some for after the trial; the other trials' rates are 20 % away and more.
	if r.Total.Throughput < s.Rate*0.9 || r.Total.Throughput > s.Rate*1.03 {
		t.Errorf("the figures are %+v, want those of %v/s", r.Total, s.Rate)
	}
	for _, trial := range s.Trials {
		if trial.Met != (trial.Missed == "") || trial.Met != (trial.Rate <= s.Rate) {
			t.Errorf("%v were found, trial %+v", s.Rate, trial)
		}
	}
	if !strings.Contains(stderr, "meets the objectives") || !strings.Contains(stderr, "misses: ") {
		t.Errorf("stderr tells no trial:\n%s", stderr)
	}
	if len(r.Anomalies) > 0 || r.LongestGap != nil && r.LongestGap.Open {
		t.Errorf("anomalies %v, gap %+v: a search falls and ends by itself", r.Anomalies, r.LongestGap)
	}
}
