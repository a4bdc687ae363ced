package loadflags

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/plan"
)

// Where Redis is may be said in the ways of redis-cli and redis-benchmark.
func TestAddresses(t *testing.T) {
	t.Setenv(PasswordVariable, "")
	type target = plan.Target
	tcp := func(addresses ...string) target {
		return target{Topology: plan.TopologyAuto, Addresses: addresses}
	}
	with := func(t target, change func(*target)) target {
		change(&t)
		return t
	}
	for text, tt := range map[string]struct {
		want     target
		password string
	}{
		"":                               {want: tcp("127.0.0.1:6379")},
		"--address redis-0":              {want: tcp("redis-0:6379")},
		"--address redis-0:7000":         {want: tcp("redis-0:7000")},
		"--address [::1]":                {want: tcp("[::1]:6379")},
		"--address [::1]:7000":           {want: tcp("[::1]:7000")},
		"--address a --address b:1 -p 7": {want: tcp("a:7", "b:1")},
		"-p 7777":                        {want: tcp("127.0.0.1:7777")},
		"-h redis-0 -p 7777":             {want: tcp("redis-0:7777")},
		"-h redis-0:1":                   {want: tcp("redis-0:1")},
		"-s redis-0":                     {want: tcp("redis-0:6379")},
		"ARG redis-0":                    {want: tcp("redis-0:6379")},
		"ARG 127.0.0.1:7777":             {want: tcp("127.0.0.1:7777")},
		"-u redis://redis-0":             {want: tcp("redis-0:6379")},
		"ARG REDIS://redis-0:7000/":      {want: tcp("redis-0:7000")},
		"ARG valkey://redis-0":           {want: tcp("redis-0:6379")},
		"ARG redis://[::1]:7000":         {want: tcp("[::1]:7000")},
		"ARG redis://redis-0 --topology Cluster": {
			want: with(tcp("redis-0:6379"), func(t *target) { t.Topology = "Cluster" }),
		},
		"ARG redis://:geheim@redis-0/2": {
			want:     with(tcp("redis-0:6379"), func(t *target) { t.Database = 2 }),
			password: "geheim",
		},
		"ARG redis://app:ge%40he%2Fim@redis-0:7000/15": {
			want: with(tcp("redis-0:7000"), func(t *target) { t.Username, t.Database = "app", 15 }), password: "ge@he/im",
		},
		"ARG rediss://redis-0": {want: with(tcp("redis-0:6379"), func(t *target) { t.TLS = &plan.TLS{} })},
		"ARG rediss://redis-0 --ca ca.crt": {
			want: with(tcp("redis-0:6379"), func(t *target) { t.TLS = &plan.TLS{CAFile: "ca.crt"} }),
		},
		"ARG unix:///run/redis.sock":  {want: tcp("unix:///run/redis.sock")},
		"ARG unix:/run/redis.sock":    {want: tcp("unix:///run/redis.sock")},
		"-s /run/redis.sock":          {want: tcp("unix:///run/redis.sock")},
		"--address ./redis.sock":      {want: tcp("unix://./redis.sock")},
		"ARG /run/redis.sock -f FILE": {want: tcp("unix:///run/redis.sock")},
		"ARG /run/redis.sock --database 3 --topology Auto": {
			want: with(tcp("unix:///run/redis.sock"), func(t *target) { t.Database = 3 }),
		},
		"ARG /run/r@dis.sock": {want: tcp("unix:///run/r@dis.sock")},
		"--sentinel s-0 --sentinel s-1:1": {want: target{
			Topology: plan.TopologyAuto,
			Sentinel: &plan.Sentinel{Addresses: []string{"s-0:26379", "s-1:1"}},
		}},
		"ARG redis-0 -f FILE": {want: tcp("redis-0:6379")},
		"ARG redis://redis-0/3 -f FILE --database 3 --tls": {
			want: with(tcp("redis-0:6379"), func(t *target) { t.Database, t.TLS = 3, &plan.TLS{} }),
		},
		"ARG redis://app@redis-0 --password-file password.go": {},
	} {
		t.Run(text, func(t *testing.T) {
			f, got, err := locatedAt(t, text)
			if tt.want.Topology == "" {
				if err == nil {
					t.Errorf("it was taken as %+v", got.Target)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Target); diff != "" || f.password != tt.password {
				t.Errorf("the password is %q, the target (-want +got):\n%s", f.password, diff)
			}
		})
	}
}

// locatedAt is the plan of a command line, in which ARG precedes the argument.
func locatedAt(t *testing.T, text string) (*Flags, *plan.Plan, error) {
	t.Helper()
	args := FromOthers(strings.Fields(text))
	var argument []string
	if len(args) > 1 && args[0] == "ARG" {
		argument, args = args[1:2], args[2:]
	}
	return located(t, argument, args)
}

// No way to write an address wrongly is accepted, none shows a password, and each error says what to do.
func TestAddressesRefused(t *testing.T) {
	t.Setenv(PasswordVariable, "")
	const secret = "geheim"
	for text, want := range map[string]string{
		"ARG ::1":                           `"::1": an IPv6 address needs brackets, as [::1]:6379`,
		"ARG ::1:7000":                      "an IPv6 address needs brackets, as [::1]:6379",
		"--address redis-0:70000":           `--address: the port of "redis-0:70000" must be between 1 and 65535`,
		"--address redis-0:":                "the port of",
		"--address :6379":                   "must be host:port",
		"-p 0":                              "--port: must be between 1 and 65535",
		"ARG a --address b":                 "are the same: use one of them",
		"-h a --address b":                  "are the same: use one of them",
		"ARG a -h b":                        "are the same: use one of them",
		"--address app:geheim@redis-0:6379": `"redis-0:6379": a user and a password need an URI, as redis://user@redis-0:6379`,
		"ARG http://app:geheim@redis-0":     `"http://redis-0": the scheme must be redis, rediss (TLS) or unix`,
		"ARG redis://app:geheim/x@redis-0":  "are written as %HH",
		"ARG redis://app:geheim#@redis-0":   "are written as %HH",
		"ARG redis://app:geheim%zz@redis-0": "are written as %HH",
		"ARG redis://:geheim@redis-0/two":   `"redis://redis-0/two": the database "two" must be a number`,
		"ARG redis://:geheim@redis-0?db=2":  "what follows ? has flags of its own",
		"ARG redis://:geheim@redis-0:x":     "%HH",
		"-u redis://:geheim@a -u b":         `"redis://a" must be the only address`,
		"ARG redis://app:geheim@a --username b --password-file x": "has a user, as --username",
		"ARG redis://:geheim@a --password-file x":                 "has a password, as --password-file",
		"ARG redis://:geheim@a/2 --database 3":                    "has a database, as --database",
		"ARG redis://a:geheim@b/2 --topology Cluster":             "--database: a cluster has only database 0",
		"ARG redis://app@a":                                       "--username needs --password-file or $REDISCLI_AUTH",
		"ARG unix:// ":                                            "is not the path of a unix socket",
		"ARG /run/ ":                                              "is not the path of a unix socket",
		"ARG /run/r.sock --tls":                                   "is a unix socket, which has no TLS: use host:port",
		"ARG /run/r.sock --ca x":                                  "is a unix socket, which has no TLS: use host:port",
		"ARG /run/r.sock --topology Cluster":                      "is a unix socket, that of one server: --topology Cluster needs host:port",
		"ARG /run/r.sock --read-from Any":                         "is a unix socket, that of one server: --read-from Any needs host:port",
		"-u /run/r.sock -u a":                                     "must be the only address",
		"-a geheim":                                               "use --password-file or $REDISCLI_AUTH",
		"-ageheim -p 1":                                           "use --password-file or $REDISCLI_AUTH",
		"--pass geheim":                                           "use --password-file or $REDISCLI_AUTH",
		"--password=geheim":                                       "use --password-file or $REDISCLI_AUTH",
		"--sentinel ::1":                                          `--sentinel: "::1": an IPv6 address needs brackets, as [::1]:26379`,
		"-t 4":                                                    "this program has no threads to choose",
		"-t set,nosuch":                                           `--tests: "nosuch": supported values: "ping", "set"`,
		"-t set --command PING":                                   "--tests excludes --command and --commands",
	} {
		t.Run(text, func(t *testing.T) {
			_, got, err := locatedAt(t, text)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("the error is %v, want %q; %+v", err, want, got)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error has the password: %v", err)
			}
		})
	}
}

// The flags of redis-benchmark mean what they mean there.
func TestFlagsOfRedisBenchmark(t *testing.T) {
	t.Setenv(PasswordVariable, "")
	f, got, err := locatedAt(t,
		"-h redis-0 -p 7000 -c 20 -n 100k -d 100 -r 1M -P 16 -q -t SET,lrange,ping_mbulk,ping_inline")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"set", "lrange_100", "lrange_300", "lrange_500", "lrange_600", "ping"}
	if diff := cmp.Diff(want, got.Workload.Benchmark.Tests); diff != "" || got.Workload.Benchmark.Order != plan.InTurn {
		t.Errorf("order %s, tests (-want +got):\n%s", got.Workload.Benchmark.Order, diff)
	}
	if got.Shape.Users != 20 || got.Shape.Requests != 100_000 || got.Client.Pipeline != 16 ||
		got.Workload.Values.MaxBytes != 100 || got.Workload.Keyspace.Keys != 1_000_000 || !f.Quiet {
		t.Errorf("quiet %v, the plan is %+v", f.Quiet, got)
	}
	if args := FromOthers([]string{"load", "-h"}); !cmp.Equal(args, []string{"load", "-h"}) {
		t.Errorf("-h alone, which asks for help, became %q", args)
	}
	if args := FromOthers([]string{
		"load", "-h", "--tls", "--",
		"-a",
	}); !cmp.Equal(args, []string{"load", "-h", "--tls", "--", "-a"}) {
		t.Errorf("-h before a flag became %q", args)
	}
}

// Of a file the tests replace the workload.
func TestTestsReplaceTheWorkload(t *testing.T) {
	got, _, err := planOf(t, clitest.LoadTestYAML, "-f", "FILE", "--tests", "incr", "--rate", "10k")
	if err != nil {
		t.Fatal(err)
	}
	if b := got.Workload.Benchmark; b == nil || len(got.Workload.Commands) > 0 || got.Shape.Rate != 10_000 {
		t.Errorf("the workload is %+v, the rate %v", got.Workload, got.Shape.Rate)
	}
}
