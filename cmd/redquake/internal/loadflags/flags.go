// Package loadflags has the flags of load: it makes the load test and its plan of them and of a
// file, and names them in errors and doubts.
package loadflags

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
)

var defaultCommands = []written{{text: "SET {key} {value}"}, {text: "9:GET {key}"}}

// Register adds the flags, in the order of their groups.
func (f *Flags) Register(flags *pflag.FlagSet) {
	f.changed = flags.Changed
	flags.SortFlags = false
	flags.StringVarP(&f.file, "file", "f", "",
		"`file` with a RedisLoadTest, - for standard input; the flags below override it")
	flags.BoolVar(&f.unrecorded, "no-record", false,
		"count requests only, without latencies, errors and gaps, to measure the overhead of recording")
	_ = flags.MarkHidden("no-record") // for hack/bench
	flags.StringVarP(&f.Output, "output", "o", "text", "`format` of the result: text or json")
	flags.StringVar(&f.Record, "record", "", "`file` to write the record to, for redquake results")
	flags.StringVar(&f.Report, "report", "",
		"`file` to write the report to: .html, .md, .json, .xml (JUnit), .csv or .txt")
	flags.StringVar(&f.HDR, "hdr", "",
		"`file` to write the latencies of each operation to, as a log of HdrHistogram (.hlog)")
	flags.BoolVarP(&f.Quiet, "quiet", "q", false, "no progress on stderr")
	f.registerTarget(flags)
	f.registerShape(flags)
	f.registerObjectives(flags)
	f.registerWorkload(flags)
	f.registerClient(flags)
	f.registerVerify(flags)
}

func (f *Flags) registerTarget(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.addresses, "address", "u", nil,
		"`host:port` of Redis, or the only one redis://[user[:password]@]host[:port][/db], rediss:// (TLS) or\n"+
			"unix:///path; repeatable, the first that replies is used (default "+defaultAddress+")")
	flags.Int32VarP(&f.port, "port", "p", 0,
		"`number` of the port of an address without one (default 6379)")
	flags.StringArrayVarP(&f.hosts, "host", "s", nil, "")
	_ = flags.MarkHidden("host") // of FromOthers
	flags.StringVar(&f.topology, "topology", "Auto",
		"`kind` of deployment: Auto, Standalone, Replication, Sentinel or Cluster; Auto detects it from the servers")
	flags.StringArrayVar(&f.sentinels, "sentinel", nil,
		"`host:port` of a sentinel that provides the primary's address; repeatable, instead of --address")
	flags.StringVar(&f.masterName, "master-name", "",
		"`name` under which the sentinels monitor the primary (default: the only one)")
	flags.StringVar(&f.sentinelUsername, "sentinel-username", "", "ACL `user` of the sentinels")
	flags.StringVar(&f.sentinelPasswordFile, "sentinel-password-file", "",
		"`file` with the password of the sentinels")
	flags.BoolVar(&f.sentinelTLS, "sentinel-tls", false,
		"use TLS to connect to the sentinels, with the same files")
	flags.StringVar(&f.username, "username", "", "ACL `user`")
	flags.StringVar(&f.passwordFile, "password-file", "",
		"`file` with the password (default: $"+PasswordVariable+" holds it)")
	flags.StringVar(&f.dsnFile, "dsn-file", "",
		"`file` with the data source name of the database, password included; only for workload.cacheAside")
	flags.Int32Var(&f.database, "database", 0, "`number` for SELECT")
	flags.BoolVar(&f.tls, "tls", false, "use TLS")
	flags.StringVar(&f.ca, "ca", "",
		"PEM `file` with the certificates to trust (default: the system's)")
	flags.StringVar(&f.cert, "cert", "", "PEM `file` with the client's certificate")
	flags.StringVar(&f.key, "key", "", "PEM `file` with its key")
	flags.StringVar(&f.serverName, "server-name", "",
		"`name` that the server's certificate must have (default: the host)")
	flags.BoolVar(&f.insecure, "insecure", false, "accept any certificate: for tests only")
}

func (f *Flags) registerShape(flags *pflag.FlagSet) {
	flags.Int32VarP(&f.users, "users", "c", defaultUsers,
		"closed loop: `number` of virtual users; with --rate or --search the most requests in flight")
	flags.Var(&rate{&f.rate, &f.ratePer}, "rate",
		"open loop: `number` of requests per second, as 500 or 10k, at times fixed in advance; also 0.5, 30/m or 100/h")
	flags.StringVar(&f.arrivals, "arrivals", "Even",
		"open loop: `way` in which requests follow each other: Even, or Poisson: at random, as from many users")
	flags.DurationVar(&f.thinkTime, "think-time", 0,
		"closed loop: a user's pause before its next request")
	flags.DurationVar(&f.duration, "duration", defaultDuration,
		"measured time, after ramp-up and warm-up")
	flags.VarP(newCount(&f.requests, 0), "requests", "n",
		"end after this `number` of requests, instead of a duration")
	flags.DurationVar(&f.rampUp, "ramp-up", 0,
		"time over which users or rate grow from 0, excluded from all figures")
	flags.DurationVar(&f.warmUp, "warm-up", 0, "time after that, excluded from all figures")

	flags.StringVar(&f.search, "search", "",
		"open loop: `FROM:TO`, find the highest rate in this range that meets the objectives "+
			"of\nlatency and errors; --duration, then 30m by default, limits the search")
	flags.DurationVar(&f.searchTrial, "search-trial", 10*time.Second,
		"minimum time over which --search evaluates each rate")
	flags.StringVar(&f.searchPrecision, "search-precision", "5%",
		"`share` by which the lowest rate that misses may be above the highest that meets the objectives")
}

func (f *Flags) registerObjectives(flags *pflag.FlagSet) {
	flags.StringVar(&f.minThroughput, "min-throughput", "",
		"lowest mean `rate` of successes per second")
	flags.DurationVar(&f.maxP50, "max-latency-p50", 0, "highest median latency")
	flags.DurationVar(&f.maxP99, "max-latency-p99", 0, "highest 99th percentile of latency")
	flags.DurationVar(&f.maxP999, "max-latency-p999", 0, "highest 99.9th percentile of latency")
	flags.StringVar(&f.maxErrorRate, "max-error-rate", "",
		"highest `share` of failed, unknown and dropped requests, as 0.1%")
	flags.StringVar(&f.minSuccess, "min-success", defaultSuccess,
		"lowest `share` of successes; 0 = any, to measure an outage\n(default "+defaultSuccess+
			", unless --max-error-rate, or maxErrorRate of the file, is set)")
	flags.Lookup("min-success").DefValue = ""
	flags.Int64Var(&f.maxLostWrites, "max-lost-writes", 0,
		"highest `number` of acknowledged writes that are lost; needs --verify-writes")
}

func (f *Flags) registerWorkload(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.commands, "command", nil,
		"Redis `command`, optionally with a weight, as '9:GET {key}'; repeatable; placeholders\n"+
			"{key} {value} {int} {user} {seq} (default 'SET {key} {value}' and '9:GET {key}')")
	flags.StringVar(&f.commandFile, "commands", "",
		"`file` with a command in each line, as of --command, - for standard input; lines with # are comments")
	flags.StringVarP(&f.tests, "tests", "t", "",
		"`names` of tests of redis-benchmark, one after the other, as set,get,lpush; instead of --command")
	flags.VarP(newCount(&f.keys, 100_000), "keys", "r", "`number` of keys that {key} is drawn from")
	flags.Int32VarP(&f.valueBytes, "value-bytes", "d", 32, "`size` of {value}")
	flags.BoolVar(&f.prefill, "prefill", false,
		"set every key before the start; on by default without --command and a file")
	f.registerDraws(flags)
}

func (f *Flags) registerClient(flags *pflag.FlagSet) {
	flags.Int32Var(&f.connections, "connections", 0,
		"`number` of connections (default: one for each user, at most 1000 to Redis; without users 50)")
	flags.Int32VarP(&f.pipeline, "pipeline", "P", 1, "`number` of requests per batch")
	flags.DurationVar(&f.timeout, "timeout", 0,
		"time that a reply may take; a request with a later reply counts as unknown, not as a "+
			"success\n(default 1s; of an HTTP API or a database 30s)")
	flags.DurationVar(&f.dialTimeout, "dial-timeout", time.Second,
		"time that one attempt to connect may take, TLS and login included")
	flags.DurationVar(&f.wait, "wait", 30*time.Second,
		"time to wait for a Redis that is not ready: no answer, data being loaded, an election;\n0 "+
			"fails at once, as a wrong password always does")
	flags.BoolVar(&f.resp2, "resp2", false,
		"use RESP2 instead of RESP3; a server without HELLO gets it in any case")
	flags.StringVar(&f.readFrom, "read-from", "Primary",
		"`servers` that read-only commands go to: Primary, Replica or Any")
	flags.StringVar(&f.mode, "mode", "Dedicated",
		"`way` of using connections: Dedicated: one request in flight per connection; Multiplexed: users share connections")
	flags.DurationVar(&f.connectionMaxAge, "connection-max-age", 0,
		"age at which a connection is replaced; 0 = never")
	flags.Int32Var(&f.retries, "retries", 0,
		"`number` of times that a failed request is sent again: a retry hides an error")
	flags.DurationVar(&f.addedLatency, "added-latency", 0,
		"latency that the client adds to each round trip, to simulate a slower network")
	flags.StringVar(&f.driver, "driver", "Native",
		"`client` that sends the requests: Native, or a library with its own pool and retries, such as "+
			"GoRedis or RedisPy")
	flags.StringArrayVar(&f.driverOptions, "driver-option", nil,
		"`option` of the driver's library by its own name, MaxRetries=7 or socket.connectTimeout=2000; repeatable")
	flags.StringVar(&f.adapter, "adapter", "",
		"`command` that runs the adapter of the driver's library, for one that is not in Go")
	f.registerProbe(flags)
	flags.DurationVar(&f.interval, "interval", 100*time.Millisecond,
		"step of the recording: 50ms, 100ms, 200ms, 500ms or 1s")
}

func (f *Flags) registerVerify(flags *pflag.FlagSet) {
	flags.BoolVar(&f.verify, "verify-writes", false,
		"make a share of the requests numbered writes and read them back after the load,\nto count the acknowledged writes that were lost")
	flags.StringVar(&f.verifyShare, "verify-share", "1%",
		"`share` of the requests that are such writes")
	flags.BoolVar(&f.staleReads, "verify-stale-reads", false,
		"also read from the replicas, to measure how far they lag behind")
	flags.BoolVar(&f.dualPrimary, "verify-dual-primary", false,
		"also send writes to every node, to detect two that accept them at the same time")
}

// LoadTest merges the file, which may be standard input, and the flags. Flags override the file.
// Errors name the flag or the file.
func (f *Flags) LoadTest(io cli.Streams) (*v1alpha1.RedisLoadTest, error) {
	test := &v1alpha1.RedisLoadTest{}
	if f.file != "" {
		var err error
		if test, err = readLoadTest(f.file, io.In, f.completeTarget); err != nil {
			return nil, err
		}
	}
	if test.Name == "" {
		test.Name = "load" // generateName, or no file
	}
	if err := f.applyWorkload(&test.Spec.Workload, io.In); err != nil {
		return nil, err
	}
	if err := f.applyShape(&test.Spec.Load); err != nil {
		return nil, err
	}
	f.applyObjectives(&test.Spec)
	if err := f.applyClient(&test.Spec); err != nil {
		return nil, err
	}
	f.applyVerify(&test.Spec)
	return test, f.conflict(&test.Spec)
}

func (f *Flags) applyWorkload(workload *v1alpha1.Workload, in io.Reader) error {
	given, err := f.writtenCommands(in)
	if err != nil {
		return err
	}
	if f.tests != "" {
		benchmark, err := f.benchmark()
		if err != nil {
			return err
		}
		*workload = v1alpha1.Workload{
			Benchmark: benchmark,
			Keyspace:  workload.Keyspace,
			Values:    workload.Values,
			Seed:      workload.Seed,
		}
	} else if f.file == "" && len(given) == 0 {
		given = defaultCommands
		workload.Keyspace.Prefill = true // nine of ten of them read
	}
	if len(given) > 0 {
		commands, err := parseCommands(given)
		if err != nil {
			return err
		}
		*workload = v1alpha1.Workload{
			Commands: commands,
			Keyspace: workload.Keyspace,
			Values:   workload.Values,
			Seed:     workload.Seed,
		}
	}
	if f.changed("keys") {
		workload.Keyspace.Keys = f.keys
	}
	f.applyDraws(workload)
	if f.changed("prefill") {
		workload.Keyspace.Prefill = f.prefill
	}
	if f.changed("value-bytes") {
		workload.Values = v1alpha1.ValueSizes{Bytes: &f.valueBytes}
	}
	return nil
}

func (f *Flags) applyClient(spec *v1alpha1.RedisLoadTestSpec) error {
	if f.changed("interval") {
		spec.Observe.Interval = metav1.Duration{Duration: f.interval}
	}
	f.applyProbe(&spec.Probe)
	if f.changed("database") {
		spec.Target.Database = f.database
	}
	f.applyTopology(&spec.Target)
	f.applyConnections(&spec.Client)
	err := f.applyDriver(&spec.Client)
	f.followUsers(spec)
	return err
}

func (f *Flags) applyVerify(spec *v1alpha1.RedisLoadTestSpec) {
	if spec.Verify == nil && !f.verify && !f.staleReads && !f.dualPrimary {
		return
	}
	if spec.Verify == nil {
		spec.Verify = &v1alpha1.LoadVerify{}
	}
	if f.changed("verify-writes") {
		spec.Verify.AcknowledgedWrites = f.verify
	}
	if f.changed("verify-share") {
		spec.Verify.Share = f.verifyShare
	}
	if f.changed("verify-stale-reads") {
		spec.Verify.StaleReads = f.staleReads
	}
	if f.changed("verify-dual-primary") {
		spec.Verify.DualPrimary = f.dualPrimary
	}
}

// Check returns an error for flags that are invalid or exclude each other.
func (f *Flags) Check() error {
	if err := f.locate(); err != nil {
		return err
	}
	if err := f.checkNumbers(); err != nil {
		return err
	}
	if err := f.checkOutputs(); err != nil {
		return err
	}
	switch {
	case f.tests != "" && (len(f.commands) > 0 || f.commandFile != ""):
		return errors.New("--tests excludes --command and --commands")
	case f.file == "-" && f.commandFile == "-":
		return errors.New("--file and --commands cannot both be standard input")
	case f.search != "" && (f.changed("rate") || f.changed("requests") || f.changed("think-time")):
		return errors.New("--search sets the rates: it excludes --rate, --requests and --think-time")
	case len(f.sentinels) > 0 && len(f.addresses) > 0:
		return errors.New(
			"--sentinel and --address exclude each other: the sentinels provide the addresses of Redis")
	}
	return f.checkLogin()
}

func (f *Flags) checkOutputs() error {
	switch {
	case f.Output != "text" && f.Output != "json":
		return fmt.Errorf("--output: %q is neither text nor json", f.Output)
	case (f.Record != "" || f.Report != "" || f.HDR != "") && f.unrecorded:
		return errors.New("--no-record excludes --record, --report and --hdr")
	}
	return f.checkFiles()
}

// checkFiles returns an error if one of the files that are written is another one, or the load
// test: each would replace what is in it.
func (f *Flags) checkFiles() error {
	files := []struct{ flag, path string }{
		{"--file", f.file},
		{"--commands", f.commandFile},
		{"--record", f.Record},
		{"--report", f.Report},
		{"--hdr", f.HDR},
	}
	for i, one := range files {
		for _, other := range files[:i] {
			if one.path != "" && sameFile(one.path, other.path) {
				return fmt.Errorf("%s and %s are the same file, %s", other.flag, one.flag, one.path)
			}
		}
	}
	return nil
}

// sameFile reports whether two paths lead to the same file, which need not be there yet. A device
// such as /dev/null takes everything.
func sameFile(a, b string) bool {
	there, err := os.Stat(a)
	if err != nil {
		return filepath.Clean(a) == filepath.Clean(b)
	}
	other, err := os.Stat(b)
	return err == nil && there.Mode().IsRegular() && os.SameFile(there, other)
}

func (f *Flags) checkNumbers() error {
	for name, bad := range map[string]bool{"wait": f.wait < 0, "retries": f.retries < 0} {
		if bad && f.changed(name) {
			return fmt.Errorf("--%s: must not be negative", name)
		}
	}
	for name, bad := range map[string]bool{
		"users":        f.users < 1,
		"rate":         f.rate < 1,
		"requests":     f.requests < 1,
		"duration":     f.duration <= 0,
		"keys":         f.keys < 1,
		"connections":  f.connections < 1,
		"pipeline":     f.pipeline < 1,
		"value-bytes":  f.valueBytes < 1,
		"interval":     f.interval <= 0,
		"timeout":      f.timeout <= 0,
		"dial-timeout": f.dialTimeout <= 0,
	} {
		// The zero value would be treated as not set and replaced by the default.
		if bad && f.changed(name) {
			return fmt.Errorf("--%s: must be above 0", name)
		}
	}
	return nil
}

func (f *Flags) checkLogin() error {
	if f.dsnFile != "" {
		if _, err := os.ReadFile(f.dsnFile); err != nil {
			return fmt.Errorf("--dsn-file: %w", err)
		}
	}
	switch {
	case (f.cert == "") != (f.key == ""):
		return errors.New("--cert and --key must be set together")
	case f.passwordFile != "":
		if _, err := os.ReadFile(f.passwordFile); err != nil {
			return fmt.Errorf("--password-file: %w", err)
		}
	case f.username != "" && f.password == "" && os.Getenv(PasswordVariable) == "":
		return errors.New("--username needs --password-file or $" + PasswordVariable)
	}
	return nil
}
