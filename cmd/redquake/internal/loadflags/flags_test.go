package loadflags

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/plan"
)

// planOf returns the plan of a command line of `redquake load`; FILE is replaced by a file with the text.
func planOf(t *testing.T, text string, args ...string) (*plan.Plan, []string, error) {
	t.Helper()
	_, got, notes, err := planned(t, text, nil, args)
	return got, notes, err
}

// located is the plan of a command line with an argument; FILE is a load test.
func located(t *testing.T, argument, args []string) (*Flags, *plan.Plan, error) {
	t.Helper()
	f, got, _, err := planned(t, clitest.LoadTestYAML, argument, args)
	return f, got, err
}

func planned(t *testing.T, text string, argument, args []string) (*Flags, *plan.Plan, []string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "test.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range args {
		args[i] = strings.Replace(args[i], "FILE", file, 1)
	}
	f := &Flags{}
	set := pflag.NewFlagSet("load", pflag.ContinueOnError)
	f.Register(set)
	if err := set.Parse(args); err != nil {
		return nil, nil, nil, err
	}
	f.Argument(argument)
	if err := f.Check(); err != nil {
		return nil, nil, nil, err
	}
	test, err := f.LoadTest(cli.Streams{In: strings.NewReader(text), Err: &bytes.Buffer{}})
	if err != nil {
		return nil, nil, nil, err
	}
	got, notes, err := f.Plan(test)
	return f, got, notes, err
}

func TestPlanOfDefaults(t *testing.T) {
	t.Setenv(PasswordVariable, "")
	got, notes, err := planOf(t, "")
	if err != nil {
		t.Fatal(err)
	}
	want := &plan.Plan{
		Run: "load", Pods: 1, Interval: 100 * time.Millisecond, Info: time.Second,
		Target: plan.Target{Topology: plan.TopologyAuto, Addresses: []string{"127.0.0.1:6379"}},
		Client: plan.Client{
			Connections: 50, Pipeline: 1, DialTimeout: time.Second, RequestTimeout: time.Second, Protocol: 3,
			ReadFrom: plan.ReadPrimary, Mode: plan.Dedicated, Driver: plan.NativeDriver,
		},
		Shape: plan.Shape{Users: 50, Duration: 30 * time.Second},
		Workload: plan.Workload{
			Commands: []plan.Command{
				{Name: "set", Weight: 1, Words: []string{"SET", "{key}", "{value}"}},
				{Name: "get", Weight: 9, Words: []string{"GET", "{key}"}},
			},
			Keyspace: plan.Keyspace{Prefix: "rq:", Keys: 100_000, Distribution: plan.Uniform, Prefill: true},
			Values:   plan.Values{MinBytes: 32, MaxBytes: 32},
		},
		Probe: plan.Probe{Rate: 100, Words: []string{"SET", "rq:probe:{user}", "{seq}", "EX", "60"}},
	}
	other, _, err := planOf(t, "")
	if err != nil || got.Workload.Seed == 0 || got.Workload.Seed == other.Workload.Seed {
		t.Errorf("two runs have the seeds %d and %d, %v; want another one for each", got.Workload.Seed,
			other.Workload.Seed, err)
	}
	got.Workload.Seed = 0
	if diff := cmp.Diff(want, got); diff != "" || len(notes) > 0 {
		t.Errorf("notes %v, plan (-want +got):\n%s", notes, diff)
	}
}

func TestPlanOfFlags(t *testing.T) {
	t.Setenv(PasswordVariable, "")
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, _, err := planOf(t, "", "--address", "a:1", "--address", "b:2", "--username", "app", "--password-file", password,
		"--database", "3",
		"--tls", "--ca", "ca.crt", "--cert", "c.crt", "--key", "c.key", "--server-name", "redis", "--insecure",
		"--rate", "500", "--users", "20", "--requests", "1000", "--ramp-up", "1s", "--warm-up", "2s",
		"--command", "INCR {key}", "--keys", "7", "--value-bytes", "8", "--prefill", "--seed", "41", "--distribution", "Zipf",
		"--zipf-exponent", "0.99", "--scattered",
		"--connections", "4", "--pipeline", "5", "--timeout", "200ms", "--dial-timeout", "3s", "--resp2", "--interval", "1s",
		"--verify-writes", "--verify-share", "5%", "--verify-stale-reads")
	if err != nil {
		t.Fatal(err)
	}
	want := &plan.Plan{
		Run: "load", Pods: 1, Interval: time.Second, Info: time.Second,
		Target: plan.Target{
			Topology: plan.TopologyAuto, Addresses: []string{"a:1", "b:2"}, Username: "app", PasswordFile: password, Database: 3,
			TLS: &plan.TLS{CAFile: "ca.crt", CertFile: "c.crt", KeyFile: "c.key", ServerName: "redis", InsecureSkipVerify: true},
		},
		Client: plan.Client{
			Connections: 4, Pipeline: 5, DialTimeout: 3 * time.Second, RequestTimeout: 200 * time.Millisecond,
			Protocol: 2,
			ReadFrom: plan.ReadPrimary, Mode: plan.Dedicated, Driver: plan.NativeDriver,
		},
		Shape: plan.Shape{Users: 20, Rate: 500, Requests: 1000, RampUp: time.Second, WarmUp: 2 * time.Second},
		Workload: plan.Workload{
			Commands: []plan.Command{{Name: "incr", Weight: 1, Words: []string{"INCR", "{key}"}}},
			Keyspace: plan.Keyspace{
				Prefix: "rq:", Keys: 7, Distribution: plan.Zipf, ZipfExponent: 0.99, Scattered: true, Prefill: true,
			},
			Values: plan.Values{MinBytes: 8, MaxBytes: 8},
			Seed:   41,
		},
		Probe:  plan.Probe{Rate: 100, Words: []string{"SET", "rq:probe:{user}", "{seq}", "EX", "60"}},
		Verify: &plan.Verify{Share: 0.05, StaleReads: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// Flags override only the corresponding fields of the file.
func TestPlanOfFileAndFlags(t *testing.T) {
	t.Setenv(PasswordVariable, "")
	text := strings.Replace(clitest.LoadTestYAML, "spec:",
		"spec:\n  objectives: {maxErrorRate: 1%}\n  pods: {count: 3}\n  client: {connections: 5}", 1)
	got, notes, err := planOf(t, text, "-f", "FILE", "--address", "x:1", "--duration", "5s")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"x:1"}; !cmp.Equal(got.Target.Addresses, want) {
		t.Errorf("addresses are %v, want %v", got.Target.Addresses, want)
	}
	if want := (plan.Shape{Users: 10, Duration: 5 * time.Second}); !cmp.Equal(got.Shape, want) {
		t.Errorf("the shape is %+v, want %+v", got.Shape, want)
	}
	if got.Pods != 1 || got.Client.Connections != 15 || got.Run != "checkout" || len(got.Workload.Commands) != 1 {
		t.Errorf("the plan is %+v, want 1 pod with 15 connections, run checkout, the file's one command", got)
	}
	want := []string{
		"the load of 3 pods was sent by this process, over 15 connections",
		"100% of the requests read keys that nothing had written before this load, unless they were there: set --prefill",
	}
	if !cmp.Equal(notes, want) {
		t.Errorf("notes are %q, want %q", notes, want)
	}
}

// A flag replaces what the file says in another way.
func TestFlagsReplaceTheShapeOfTheFile(t *testing.T) {
	t.Setenv(PasswordVariable, "")
	const closed, stages = "users: 10, thinkTime: 1s, warmUp: 5s, duration: 40s", "stages: [{rate: 5, duration: 10s}]"
	searching := plan.Shape{
		Rate: 500,
		Search: &plan.Search{
			From:      500,
			To:        900,
			Trial:     10 * time.Second,
			Precision: 0.05,
			Settle:    2 * time.Second,
			Requests:  1000,
		},
	}
	for _, tt := range []struct {
		name, load string
		args       []string
		want       plan.Shape
	}{
		{
			"a rate for users",
			closed,
			[]string{"--rate", "100"},
			plan.Shape{Rate: 100, WarmUp: 5 * time.Second, Duration: 40 * time.Second},
		},
		{
			"a rate, and users in flight",
			closed,
			[]string{"--rate", "100", "--users", "7"},
			plan.Shape{Rate: 100, Users: 7, WarmUp: 5 * time.Second, Duration: 40 * time.Second},
		},
		{
			"another number of users",
			closed,
			[]string{"--users", "7"},
			plan.Shape{Users: 7, ThinkTime: time.Second, WarmUp: 5 * time.Second, Duration: 40 * time.Second},
		},
		{
			"another rate",
			"rate: 5, users: 3, duration: 40s",
			[]string{"--rate", "100"},
			plan.Shape{Rate: 100, Users: 3, Duration: 40 * time.Second},
		},
		{"a rate for stages", stages, []string{"--rate", "100"}, plan.Shape{Rate: 100, Duration: 30 * time.Second}},
		{"users for stages", stages, []string{"--users", "7", "--requests", "50"}, plan.Shape{Users: 7, Requests: 50}},
		{
			"a search for users",
			closed,
			[]string{"--search", "500:900"},
			plan.Shape{Rate: 500, Search: searching.Search, WarmUp: 5 * time.Second, Duration: 40 * time.Second},
		},
		{
			"a search for stages",
			stages,
			[]string{"--search", "500:900"},
			plan.Shape{Rate: 500, Search: searching.Search, Duration: 30 * time.Minute},
		},
		{
			"a rate for a search",
			"search: {from: 100, to: 900}, duration: 40s",
			[]string{"--rate", "100"},
			plan.Shape{Rate: 100, Duration: 40 * time.Second},
		},
		{
			"another search",
			"users: 3, search: {from: 100, to: 900}, duration: 40s",
			[]string{"--search", "500:900"},
			plan.Shape{Rate: 500, Search: searching.Search, Users: 3, Duration: 40 * time.Second},
		},
	} {
		text := strings.Replace(clitest.LoadTestYAML, "load: {users: 10, duration: 30s}",
			"objectives: {maxErrorRate: 1%}\n  load: {"+tt.load+"}", 1)
		got, _, err := planOf(t, text, append([]string{"-f", "FILE"}, tt.args...)...)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got.Shape); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// Commands replace the workload of the file, and addresses are the target of a file that has none.
func TestFlagsCompleteTheFile(t *testing.T) {
	t.Setenv(PasswordVariable, "")
	text := strings.Replace(clitest.LoadTestYAML, `  target: {addresses: ["127.0.0.1:6379"]}`, "", 1)
	text = strings.Replace(text, `{commands: [{name: get, command: [GET, "{key}"]}]}`,
		"{rateLimiter: {limit: 5, window: 1s}, keyspace: {keys: 9}}", 1)
	got, _, err := planOf(t, text, "-f", "FILE", "--address", "x:1", "--command", "INCR {key}")
	if err != nil {
		t.Fatal(err)
	}
	if got.Target.Addresses[0] != "x:1" || got.Workload.RateLimiter != nil || len(got.Workload.Commands) != 1 ||
		got.Workload.Keyspace.Keys != 9 {
		t.Errorf("%+v", got)
	}
	if got, _, err = planOf(t, text, "-f", "FILE", "--sentinel", "s:1"); err != nil || got.Target.Sentinel == nil ||
		got.Workload.RateLimiter == nil {
		t.Errorf("with sentinels: %+v, %v", got, err)
	}
	if _, _, err = planOf(t, text, "-f", "FILE"); err == nil || !strings.Contains(err.Error(), "set target") {
		t.Errorf("without an address: %v", err)
	}
}

// Addresses replace a Service, which the command line does not resolve; the file alone must still be valid.
func TestAddressInTheFileOfAService(t *testing.T) {
	t.Setenv(PasswordVariable, "")
	text := strings.Replace(clitest.LoadTestYAML, `{addresses: ["127.0.0.1:6379"]}`, `{service: {name: redis}}`, 1)
	got, _, err := planOf(t, text, "-f", "FILE", "--address", "x:1")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"x:1"}; !cmp.Equal(got.Target.Addresses, want) {
		t.Errorf("addresses are %v, want %v", got.Target.Addresses, want)
	}
	_, _, err = planOf(t, strings.Replace(text, "duration: 30s", "duration: 1ms", 1), "-f", "FILE", "--address", "x:1",
		"--duration", "5s")
	if err == nil || !strings.Contains(err.Error(), "spec.load.duration: Invalid value") {
		t.Errorf("a file with a duration of 1ms: %v", err)
	}
}

// What a load from the command line leaves out is noted.
func TestNotesOfAFile(t *testing.T) {
	text := clitest.LoadTestYAML +
		"  pods: {count: 2}\n  observe: {pods: [{name: app, selector: {matchLabels: {app: shop}}}]}\n"
	_, notes, err := planOf(t, text, "-f", "FILE")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(notes, "\n"); len(notes) != 3 || !strings.Contains(got, "set --prefill") ||
		!strings.Contains(got, "the load of 2 pods was sent by this process") ||
		!strings.Contains(got,
			"the pods of spec.observe.pods were not observed: there is no metrics API outside of a cluster") {
		t.Errorf("the notes are\n%s", got)
	}
}

func TestPasswordOfTheEnvironment(t *testing.T) {
	t.Setenv(PasswordVariable, "secret")
	withSecrets := strings.Replace(clitest.LoadTestYAML, `{addresses: ["127.0.0.1:6379"]}`,
		`{addresses: ["a:1"], auth: {username: app, passwordSecretRef: {name: x, key: password}}}`, 1)
	plan, _, err := planOf(t, withSecrets, "-f", "FILE")
	if err != nil {
		t.Fatal(err)
	}
	if plan.Target.PasswordFile != "" || plan.Target.Username != "app" {
		t.Errorf("the target is %+v, want user app and no password file", plan.Target)
	}
	if n := len((&Flags{}).Options()); n != 2 {
		t.Errorf("%d options for the runner, want --wait and the password", n)
	}
	if n := len((&Flags{passwordFile: "x"}).Options()); n != 1 {
		t.Errorf("%d options beside --password-file, want --wait", n)
	}
}

// Durations below a millisecond are written with the letter µ by Go, in objects of a file as in those of flags.
func TestPlanOfMicroseconds(t *testing.T) {
	t.Setenv(PasswordVariable, "")
	text := strings.Replace(clitest.LoadTestYAML, "spec:",
		"spec:\n  objectives: {maxLatencyP99: 900us}\n  client: {addedLatency: 0.5ms}", 1)
	for _, args := range [][]string{{"-f", "FILE"}, {"--added-latency", "500us", "--max-latency-p99", "900us"}} {
		if got, _, err := planOf(t, text, args...); err != nil || got.Client.AddedLatency != 500*time.Microsecond {
			t.Errorf("%v: %+v, %v", args, got, err)
		}
	}
}

// The help of load lists every flag, under a title.
func TestHelpOfLoad(t *testing.T) {
	var flags Flags
	var help strings.Builder
	cmd := &cobra.Command{Use: "load", Run: func(*cobra.Command, []string) {}}
	flags.Register(cmd.Flags())
	Group(cmd)
	cmd.SetOut(&help)
	cmd.SetArgs([]string{"--help"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		if strings.Count(help.String(), "\n\n"+g.title+":\n") != 1 || cmd.Flags().Lookup(g.first) == nil {
			t.Errorf("the group %q, from --%s on, is not there", g.title, g.first)
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if lines := strings.Count(help.String(), " --"+f.Name+" "); lines == 0 && !f.Hidden && f.Name != "help" {
			t.Errorf("--%s is not in the help", f.Name)
		}
	})
}
