package loadflags

import (
	"strings"
	"testing"

	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
)

func TestPlanRefuses(t *testing.T) {
	t.Setenv(PasswordVariable, "")
	in := func(spec string) string {
		return strings.Replace(clitest.LoadTestYAML, `{addresses: ["127.0.0.1:6379"]}`, spec, 1)
	}
	withSecrets := in(`{addresses: ["a:1"], auth: {passwordSecretRef: {name: x, key: password}}}`)
	withTLS := in(`{addresses: ["a:1"], tls: {caSecretRef: {name: x}, certSecretRef: {name: client}}}`)
	withStages := strings.Replace(
		clitest.LoadTestYAML, "users: 10, duration: 30s", "stages: [{rate: 5, duration: 10s}]", 1)
	withSearch := strings.Replace(clitest.LoadTestYAML, "load: {users: 10, duration: 30s}",
		"objectives: {maxErrorRate: 1%}\n  load: {users: 10, duration: 30s, search: {from: 5, to: 10}}", 1)
	withDatabase := strings.Replace(clitest.LoadTestYAML, "workload: {",
		`workload: {cacheAside: {database: {driver: postgres, dsnSecretRef: {name: shop, key: dsn}, query: "SELECT $1"}}} #`,
		1)
	tests := []struct {
		name, text string
		args       []string
		want       string
	}{
		{
			"database secret",
			withDatabase,
			[]string{"-f", "FILE"},
			"test.yaml: spec.workload.cacheAside.database.dsnSecretRef: " +
				"Secrets are not read outside of a cluster: pass --dsn-file",
		},
		{
			"database file",
			withDatabase,
			[]string{"-f", "FILE", "--dsn-file", "/does/not/exist"},
			"--dsn-file: open /does/not/exist: no such file",
		},
		{
			"database file of commands",
			clitest.LoadTestYAML,
			[]string{"-f", "FILE", "--dsn-file", "FILE"},
			"--dsn-file needs a file with workload.cacheAside",
		},
		{"output", "", []string{"-o", "yaml"}, `--output: "yaml" is neither text nor json`},
		{"arrivals of users", "", []string{"--arrivals", "Poisson"}, "--arrivals Poisson belongs to --rate"},
		{"arrivals", "", []string{"--rate", "5", "--arrivals", "Normal"}, `--arrivals: "Normal": supported values`},
		{"exponent", "", []string{"--zipf-exponent", "2"}, "--zipf-exponent needs --distribution Zipf"},
		{
			"no exponent",
			"",
			[]string{"--distribution", "Zipf", "--zipf-exponent", "much"},
			"--zipf-exponent: much: must be a number between 0.01 and 10",
		},
		{"centre", "", []string{"--gaussian-centre", "1%"}, "--gaussian-centre and --gaussian-deviation need"},
		{
			"deviation",
			"",
			[]string{"--distribution", "Gaussian", "--gaussian-deviation", "0%"},
			"--gaussian-deviation: 0%: must be above 0%",
		},
		{"distribution", "", []string{"--distribution", "Pareto"}, `--distribution: "Pareto": supported values`},
		{"seed", "", []string{"--seed", "0"}, "--seed: 0: "},
		{"probe", "", []string{"--probe-operation", "Ping"}, `--probe-operation: "Ping": supported values`},
		{"probes", "", []string{"--probe-rate", "1001"}, "--probe-rate: 1001: "},
		{"zero", "", []string{"--users", "0"}, "--users: must be above 0"},
		{
			"stale reads alone",
			"",
			[]string{"--verify-stale-reads"},
			"--verify-share, --verify-stale-reads and --verify-dual-primary go with --verify-writes",
		},
		{"share of nothing", "", []string{"--verify-writes", "--verify-share", "0%"}, "--verify-share: 0%: must be above 0%"},
		{"cert alone", "", []string{"--cert", "x"}, "--cert and --key must be set together"},
		{
			"password file",
			"",
			[]string{"--password-file", "/does/not/exist"},
			"--password-file: open /does/not/exist: no such file",
		},
		{"username alone", "", []string{"--username", "app"}, "--username needs --password-file or $REDISCLI_AUTH"},
		{
			"two outputs in one file",
			"",
			[]string{"--record", "/tmp/./x", "--report", "/tmp/x"},
			"--record and --report are the same file, /tmp/x",
		},
		{
			"output over the input",
			clitest.LoadTestYAML,
			[]string{"-f", "FILE", "--hdr", "FILE"},
			"--file and --hdr are the same",
		},
		{"record of nothing", "", []string{"--record", "x", "--no-record"}, "--no-record excludes --record, --report and"},
		{
			"report of nothing",
			"",
			[]string{"--report", "x.html", "--no-record"},
			"--no-record excludes --record, --report and --hdr",
		},
		{
			"throughput that is no number",
			"",
			[]string{"--min-throughput", "abc"},
			"--min-throughput: abc: must be a number above 0, as 1500",
		},
		{"no file", "", []string{"-f", "/does/not/exist"}, "--file: open /does/not/exist"},
		{
			"flags that the file excludes",
			clitest.LoadTestYAML,
			[]string{"-f", "FILE", "--rate", "5", "--think-time", "1s"},
			"--think-time belongs to --users",
		},
		{
			"address without a port",
			clitest.LoadTestYAML,
			[]string{"-f", "FILE", "--address", "redis:70000"},
			"--address: the port of",
		},
		{"address", "", []string{"--address", "re dis"}, "--address: re dis:6379: must be host:port, as redis-0:6379"},
		{"rate and think time", "", []string{"--rate", "5", "--think-time", "1s"}, "--think-time belongs to --users"},
		{
			"field of the file",
			strings.Replace(clitest.LoadTestYAML, "users: 10", "users: -1", 1),
			[]string{"-f", "FILE"},
			"\n* spec.load.users: Invalid value: -1",
		},
		{
			"error rate without a unit",
			"",
			[]string{"--max-error-rate", "0.1"},
			"--max-error-rate: 0.1: must be a share in percent, as 0.1%",
		},
		{
			"fine duration",
			"",
			[]string{"--warm-up", "500us"},
			"--warm-up: 500µs: must be a duration, as 1m30s; no part of it below 1ms",
		},
		{
			"read from",
			"",
			[]string{"--read-from", "Nearest"},
			`--read-from: "Nearest": supported values: "Primary", "Replica", "Any"`,
		},
		{
			"two flags",
			"",
			[]string{"--min-throughput", "-5", "--max-error-rate", "x"},
			"\n* --max-error-rate: x: must be a share",
		},
		{
			"weight",
			"",
			[]string{"--command", "0:GET {key}"},
			`--command "0:GET {key}": the weight 0 must be between 1 and 1000000`,
		},
		{
			"weight that is no number",
			"",
			[]string{"--command", "x:GET {key}"},
			`--command "x:GET {key}": the weight x must be a whole number`,
		},
		{
			"options of no library",
			"",
			[]string{"--driver-option", "PoolSize=5"},
			"--driver-option and --adapter belong to the library of another --driver than Native",
		},
		{
			"pipeline of GoRedis",
			"",
			[]string{"--driver", "GoRedis", "--pipeline", "5"},
			"belong to --driver Native; a library has options of its own: --driver-option",
		},
		{"lost writes of none", "", []string{"--max-lost-writes", "5"}, "--max-lost-writes needs --verify-writes"},
		{"share without verification", "", []string{"--verify-share", "5%"}, "go with --verify-writes"},
		{"search for nothing", "", []string{"--search", "10:20"}, "--search needs one of --max-latency-p50"},
		{
			"replicas of one server",
			"",
			[]string{"--topology", "Standalone", "--read-from", "Replica"},
			"--read-from: the topology Standalone has no replicas",
		},
		{
			"database of a cluster",
			"",
			[]string{"--topology", "Cluster", "--database", "5"},
			"--database: a cluster has only database 0",
		},
		{
			"length of stages",
			withStages,
			[]string{"-f", "FILE", "--duration", "5s"},
			"--duration, --requests, --ramp-up and --warm-up: the stages of the file are the whole course",
		},
		{
			"pauses in stages of rates",
			withStages,
			[]string{"-f", "FILE", "--think-time", "5s"},
			"--think-time belongs to --users",
		},
		{
			"requests of a search",
			withSearch,
			[]string{"-f", "FILE", "--requests", "5"},
			"--requests: a search ends by itself",
		},
		{"service", in(`{service: {name: redis}}`), []string{"-f", "FILE"}, "test.yaml: spec.target: names no addresses"},
		{
			"password secret",
			withSecrets,
			[]string{"-f", "FILE"},
			"test.yaml: spec.target.auth.passwordSecretRef: Secrets are not read",
		},
		{"CA secret", withTLS, []string{"-f", "FILE"}, "test.yaml: spec.target.tls.caSecretRef: Secrets are not read"},
		{
			"client secret",
			withTLS,
			[]string{"-f", "FILE", "--ca", "x"},
			"test.yaml: spec.target.tls.certSecretRef: Secrets are not read",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := planOf(t, tt.text, tt.args...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("the error is %v, want one that contains %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "evaluating rule") {
				t.Errorf("the error tells of a rule that cannot be evaluated: %v", err)
			}
		})
	}
}
