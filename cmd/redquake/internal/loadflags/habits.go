package loadflags

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
)

// FromOthers translates what users of redis-benchmark write and flags cannot express: -h with a
// host, and a password, which is left out so that nothing writes it. -h without a host is help.
func FromOthers(args []string) []string {
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(out, args[i:]...)
		}
		hasValue := i+1 < len(args) && !strings.HasPrefix(args[i+1], "-")
		switch name, _, _ := strings.Cut(arg, "="); {
		case arg == "-h" && hasValue:
			out = append(out, "--host")
		case isPassword(name):
			out = append(out, "--password-file=") // refused
			if hasValue && name == arg && (name == "-a" || strings.HasPrefix(name, "--")) {
				i++
			}
		default:
			out = append(out, arg)
		}
	}
	return out
}

// isPassword reports whether a flag of other programs takes a password.
func isPassword(flag string) bool {
	switch flag {
	case "--pass", "--password", "--authenticate", "--auth":
		return true
	}
	return strings.HasPrefix(flag, "-a")
}

// instead is what flags of redis-benchmark and memtier_benchmark are called here.
var instead = map[string]string{
	"clients":             "--users (each has a connection)",
	"threads":             "--users: this program uses the CPUs that there are",
	"cluster":             "--topology Cluster, if it is not detected",
	"cluster-mode":        "--topology Cluster, if it is not detected",
	"csv":                 "--record FILE, then redquake results FILE -o csv",
	"data-size":           "--value-bytes",
	"dbnum":               "--database",
	"select-db":           "--database",
	"hdr-file-prefix":     "--hdr",
	"json-out-file":       "-o json",
	"key-maximum":         "--keys",
	"key-prefix":          "a file with workload.keyspace.prefix",
	"randomize":           "nothing: each run draws other keys",
	"rate-limiting":       "--rate, of all connections together",
	"ratio":               "--command with weights, as 1:10 by --command 'SET {key} {value}' --command '10:GET {key}'",
	"server":              "--address",
	"socket":              "--address",
	"uri":                 "--address",
	"unix-socket":         "--address",
	"sni":                 "--server-name",
	"cacert":              "--ca",
	"test-time":           "--duration",
	"user":                "--username",
	"3":                   "nothing: RESP3 is the default",
	"D":                   "--record FILE",
	"I":                   "--think-time",
	"k":                   "nothing: connections are kept alive; --connection-max-age replaces them",
	"l":                   "--duration",
	"S":                   "--address",
	"x":                   "--commands FILE",
	"run-count":           "a loop of the shell, and redquake compare",
	"print-percentiles":   "nothing: p50, p90, p95, p99, p99.9 and p99.99 are always there",
	"command-key-pattern": "a file with workload.keyspace.distribution",
	"key-pattern":         "a file with workload.keyspace.distribution",
	"command-ratio":       "a weight before the command, as '9:GET {key}'",
	"reconnect-interval":  "--connection-max-age",
	"data-size-range":     "a file with workload.values",
	"out-file":            "--report FILE",
	"tls-skip-verify":     "--insecure",
}

// Others are the names of flags of other programs that Instead knows.
func Others() []string {
	return slices.Sorted(maps.Keys(instead))
}

// Instead says by which flag of load one of another program is replaced; "" = it is not known.
func Instead(name string) string {
	return instead[name]
}

// namesOfTests are tests of redis-benchmark whose name here is another one.
var namesOfTests = map[string][]v1alpha1.BenchmarkTest{
	"ping_inline": {"ping"},
	"ping_mbulk":  {"ping"},
	"lrange":      {"lrange_100", "lrange_300", "lrange_500", "lrange_600"},
}

// benchmark is the workload of --tests.
func (f *Flags) benchmark() (*v1alpha1.BenchmarkWorkload, error) {
	workload := &v1alpha1.BenchmarkWorkload{}
	seen := map[v1alpha1.BenchmarkTest]bool{}
	for _, name := range strings.Split(strings.ToLower(f.tests), ",") {
		name = strings.TrimSpace(name)
		if name == "" || strings.Trim(name, "0123456789") == "" {
			return nil, fmt.Errorf("--tests: %q must be names of tests, as set,get,lpush; this program "+
				"has no threads to choose", f.tests)
		}
		tests, ok := namesOfTests[name]
		if !ok {
			tests = []v1alpha1.BenchmarkTest{v1alpha1.BenchmarkTest(name)}
		}
		for _, test := range tests {
			if !seen[test] {
				workload.Tests = append(workload.Tests, test)
			}
			seen[test] = true
		}
	}
	return workload, nil
}
