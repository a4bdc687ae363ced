package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/testing/installed"
)

// figures are what a tool reports.
type figures struct {
	requests  int     // that were answered
	perSecond float64 // requests
	// microseconds; with pipelining tools define a request differently, see docs/benchmarks.md
	p50, p99 float64
	// sent50 and sent99 are the same from the send on; 0 if p50 and p99 are. Only redquake's in an
	// open loop count from the planned time.
	sent50, sent99 float64
}

// tool is one load generator, as a program.
type tool struct {
	name     string
	keys     string // format of its key names
	firstKey int    // number of the first one
	missing  string // why it cannot be run; "" if it can
	can      func(w *work) bool
	args     func(w *work) []string
	read     func(w *work, stdout []byte) (figures, error)
	version  string
}

// Names of tools that are compared with others.
const (
	nameRedquake       = "redquake"
	nameLedger         = "redquake, ledger at 1 %"
	nameOff            = "redquake, recording off"
	nameUnbounded      = "redquake, bounds off"
	nameMemtier        = "memtier_benchmark"
	nameRedisBenchmark = "redis-benchmark"
	nameValkey         = "valkey-benchmark"
	nameResp           = "resp-benchmark"
	nameGoRedis        = "go-redis"
	nameFloor          = "floor"
)

// ours are the tools that are not others'.
var ours = []string{nameRedquake, nameLedger, nameOff, nameUnbounded, nameFloor}

// tools are all that are compared; the first ones are others'. own is this program.
func tools(ctx context.Context, own string, o *options) []tool {
	return []tool{
		memtier(o.memtier), redisBenchmark(nameRedisBenchmark, "redis-benchmark-8"),
		redisBenchmark(nameValkey, "valkey-benchmark"), respBenchmark(), goRedis(own), floor(own),
		redquakeLoad(ctx, o.redquake, nameRedquake, ""),
		redquakeLoad(ctx, o.redquake, nameLedger, o.ledgerArgs),
		redquakeLoad(ctx, o.redquake, nameOff, o.offArgs),
		withoutBounds(ctx, o.unbounded),
	}
}

// redisBenchmark is redis-benchmark or its successor, of hack/newer-servers.sh. It has one thread by
// default. Only valkey-benchmark limits a rate. In a cluster a connection's keys are all of one
// slot.
func redisBenchmark(name, program string) tool {
	path, err := installed.Find(program)
	t := tool{
		name:    name,
		keys:    "key:%012d",
		version: firstLine(path, "--version"),
		can: func(w *work) bool {
			return w.shards == 0 && (!w.open() || name == nameValkey)
		},
		args: func(w *work) []string {
			test := "set"
			if w.get {
				test = "get"
			}
			args := []string{
				path, "-h", "127.0.0.1", "-p", strconv.Itoa(w.port), "-c",
				strconv.Itoa(w.connections), "-n", strconv.Itoa(w.requests),
				"-d", strconv.Itoa(w.valueBytes), "-r", strconv.Itoa(keys), "-P", strconv.Itoa(w.pipeline), "-t",
				test, "--csv", "--precision", "3",
			}
			if w.tls != nil {
				args = append(args, "--tls", "--cacert", w.tls.File("ca.crt"), "--cert",
					w.tls.File("client.crt"), "--key", w.tls.File("client.key"))
			}
			if w.open() {
				args = append(args, "--rps", strconv.Itoa(w.rate))
			}
			return args
		},
		read: readRedisBenchmark,
	}
	if err != nil {
		t.missing = err.Error()
	}
	return t
}

func readRedisBenchmark(w *work, stdout []byte) (figures, error) {
	rows, err := csv.NewReader(strings.NewReader(string(stdout))).ReadAll()
	if err != nil || len(rows) != 2 {
		return figures{}, fmt.Errorf("redis-benchmark wrote %q: %w", stdout,
			errors.Join(err, errors.New("a title and a line were expected")))
	}
	value := map[string]float64{}
	for i, title := range rows[0] {
		if i > 0 && i < len(rows[1]) {
			if value[title], err = strconv.ParseFloat(rows[1][i], 64); err != nil {
				return figures{}, fmt.Errorf("redis-benchmark: %s: %w", title, err)
			}
		}
	}
	if value["rps"] <= 0 {
		return figures{}, fmt.Errorf("redis-benchmark wrote %q", stdout)
	}
	return figures{
		requests:  w.requests,
		perSecond: value["rps"],
		p50:       value["p50_latency_ms"] * 1000,
		p99:       value["p99_latency_ms"] * 1000,
	}, nil
}

// redquakeLoad is `redquake load` with more arguments, or missing if the program does not support
// them.
func redquakeLoad(ctx context.Context, program, name, more string) tool {
	flags := strings.Fields(more)
	t := tool{
		name:    name,
		keys:    "rq:%d",
		read:    readRedquake,
		version: firstLine(program, "version"),
	}
	if t.missing = unsupported(ctx, program, flags); t.missing != "" {
		return t
	}
	t.can = func(w *work) bool { return w.details || len(flags) == 0 }
	t.args = func(w *work) []string {
		command := "SET {key} {value}"
		if w.get {
			command = "GET {key}"
		}
		args := []string{
			// for each shard
			program, "load", "--address", w.address, "--connections",
			strconv.Itoa(w.connections / max(1, w.shards)),
			"--users", strconv.Itoa(w.connections), "--pipeline", strconv.Itoa(w.pipeline), "--requests",
			strconv.Itoa(w.requests), "--keys", strconv.Itoa(keys),
			"--value-bytes", strconv.Itoa(w.valueBytes), "--command", command, "-o", "json",
			"--probe-operation", "Write", // the key that it would read does not exist
		}
		if w.rate > 0 {
			args = append(args, "--rate", strconv.Itoa(w.rate))
		}
		if w.tls != nil {
			args = append(args, "--tls", "--ca", w.tls.File("ca.crt"), "--cert", w.tls.File("client.crt"),
				"--key", w.tls.File("client.key"))
		}
		return append(args, flags...)
	}
	return t
}

// withoutBounds is a build of `redquake load` without bounds.
func withoutBounds(ctx context.Context, program string) tool {
	t := redquakeLoad(ctx, program, nameUnbounded, "")
	t.can, t.missing = func(w *work) bool { return w.details }, onPath(program)
	return t
}

// unsupported returns why program does not accept the flags of `load`. --help comes last, so that
// the flags before it are parsed and nothing is run.
func unsupported(ctx context.Context, program string, flags []string) string {
	if len(flags) == 0 {
		return ""
	}
	args := slices.Concat([]string{"load"}, flags, []string{"--help"})
	if err := exec.CommandContext(ctx, program, args...).Run(); err != nil {
		return fmt.Sprintf("this redquake load does not support %s", strings.Join(flags, " "))
	}
	return ""
}

func readRedquake(_ *work, stdout []byte) (figures, error) {
	type quantiles struct{ P50, P99 float64 }
	var out struct {
		Outcome string
		Total   struct {
			Requests, OK int
			Throughput   float64    `json:"throughputPerSecond"`
			Latency      *quantiles `json:"latencySeconds"` // absent with the recording off
			Service      *quantiles `json:"serviceSeconds"` // in an open loop
		}
	}
	if err := json.Unmarshal(stdout, &out); err != nil {
		return figures{}, fmt.Errorf("redquake: %w", err)
	}
	if out.Outcome != "Finished" || out.Total.OK != out.Total.Requests {
		return figures{}, fmt.Errorf("redquake: %s, %d of %d requests answered well", out.Outcome,
			out.Total.OK, out.Total.Requests)
	}
	f := figures{requests: out.Total.OK, perSecond: out.Total.Throughput}
	if s := out.Total.Latency; s != nil {
		f.p50, f.p99 = s.P50*1e6, s.P99*1e6
	}
	if s := out.Total.Service; s != nil {
		f.sent50, f.sent99 = s.P50*1e6, s.P99*1e6
	}
	return f, nil
}

func onPath(program string) string {
	if _, err := exec.LookPath(program); err != nil {
		return program + " is not on PATH"
	}
	return ""
}

// firstLine is the first line that a program writes, "" if it does not run.
func firstLine(program string, args ...string) string {
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}
