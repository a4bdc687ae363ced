package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The same for every tool.
const (
	connections = 50
	valueBytes  = 32
	keys        = 100_000 // drawn uniformly at random; all of them exist beforehand
)

// work is the task of a tool in one run.
type work struct {
	get      bool // else SET
	pipeline int
	requests int
	address  string // host:port
	port     int
	folder   string // for the tool's own files
}

// figures are what a tool reports.
type figures struct {
	requests  int     // that were answered
	perSecond float64 // requests
	p50, p99  float64 // microseconds; with pipelining tools define a request differently, see docs/benchmarks.md
}

// tool is one load generator, as a program.
type tool struct {
	name     string
	keys     string // format of its key names
	firstKey int    // number of the first one
	missing  string // why it cannot be run; "" if it can
	args     func(l work) []string
	read     func(l work, stdout []byte) (figures, error)
	version  string
}

// tools are all that are compared; the first ones are others'. redquake is our program, own this one.
func tools(ctx context.Context, redquake, own, ledgerArgs, offArgs string) []tool {
	list := []tool{memtier(), redisBenchmark(), goRedis(own)}
	for _, v := range []struct{ name, args string }{
		{"redquake", ""}, {"redquake, ledger at 1 %", ledgerArgs}, {"redquake, recording off", offArgs},
	} {
		list = append(list, redquakeLoad(ctx, redquake, v.name, strings.Fields(v.args)))
	}
	return list
}

// redisBenchmark has one thread by default.
func redisBenchmark() tool {
	return tool{
		name: "redis-benchmark", keys: "key:%012d", missing: onPath("redis-benchmark"), version: firstLine("redis-benchmark", "--version"),
		args: func(l work) []string {
			test := "set"
			if l.get {
				test = "get"
			}
			return []string{"redis-benchmark", "-h", "127.0.0.1", "-p", strconv.Itoa(l.port), "-c", strconv.Itoa(connections), "-n", strconv.Itoa(l.requests),
				"-d", strconv.Itoa(valueBytes), "-r", strconv.Itoa(keys), "-P", strconv.Itoa(l.pipeline), "-t", test, "--csv", "--precision", "3"}
		},
		read: readRedisBenchmark,
	}
}

func readRedisBenchmark(l work, stdout []byte) (figures, error) {
	rows, err := csv.NewReader(strings.NewReader(string(stdout))).ReadAll()
	if err != nil || len(rows) != 2 {
		return figures{}, fmt.Errorf("redis-benchmark wrote %q: %w", stdout, errors.Join(err, errors.New("a title and a line were expected")))
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
	return figures{requests: l.requests, perSecond: value["rps"], p50: value["p50_latency_ms"] * 1000, p99: value["p99_latency_ms"] * 1000}, nil
}

// memtier gets one thread with all connections: the others have no more than one for the network either.
func memtier() tool {
	missing := onPath("memtier_benchmark")
	t := tool{name: "memtier_benchmark", keys: "rq:%d", firstKey: 1, missing: missing, read: readMemtier} // it refuses key 0
	if missing == "" {
		t.version = firstLine("memtier_benchmark", "--version")
	}
	t.args = func(l work) []string {
		ratio := "1:0"
		if l.get {
			ratio = "0:1"
		}
		return []string{"memtier_benchmark", "-s", "127.0.0.1", "-p", strconv.Itoa(l.port), "-t", "1", "-c", strconv.Itoa(connections),
			"-n", strconv.Itoa(l.requests / connections), "-d", strconv.Itoa(valueBytes), "--ratio", ratio, "--pipeline", strconv.Itoa(l.pipeline),
			"--key-prefix", "rq:", "--key-minimum", "1", "--key-maximum", strconv.Itoa(keys), "--key-pattern", "R:R", "--distinct-client-seed",
			"--hide-histogram", "--json-out-file", filepath.Join(l.folder, "memtier.json")}
	}
	return t
}

func readMemtier(l work, _ []byte) (figures, error) {
	text, err := os.ReadFile(filepath.Join(l.folder, "memtier.json"))
	if err != nil {
		return figures{}, err
	}
	var out struct {
		All struct {
			Totals struct {
				Count     int
				PerSecond float64        `json:"Ops/sec"`
				Latencies map[string]any `json:"Percentile Latencies"`
			} `json:"Totals"`
		} `json:"ALL STATS"`
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return figures{}, fmt.Errorf("memtier_benchmark: %w", err)
	}
	t := &out.All.Totals
	p50, ok50 := t.Latencies["p50.00"].(float64)
	p99, ok99 := t.Latencies["p99.00"].(float64)
	if t.Count == 0 || !ok50 || !ok99 {
		return figures{}, errors.New("memtier_benchmark: its JSON has no count or no percentiles")
	}
	return figures{requests: t.Count, perSecond: t.PerSecond, p50: p50 * 1000, p99: p99 * 1000}, nil
}

// redquakeLoad is `redquake load` with more arguments, or missing if the program does not support them.
func redquakeLoad(ctx context.Context, program, name string, more []string) tool {
	t := tool{name: name, keys: "rq:%d", read: readRedquake, version: firstLine(program, "version")}
	if t.missing = unsupported(ctx, program, more); t.missing != "" {
		return t
	}
	t.args = func(l work) []string {
		command := "SET {key} {value}"
		if l.get {
			command = "GET {key}"
		}
		return append([]string{program, "load", "--address", l.address, "--connections", strconv.Itoa(connections), "--users", strconv.Itoa(connections),
			"--pipeline", strconv.Itoa(l.pipeline), "--requests", strconv.Itoa(l.requests), "--keys", strconv.Itoa(keys),
			"--value-bytes", strconv.Itoa(valueBytes), "--command", command, "-o", "json"}, more...)
	}
	return t
}

// unsupported returns why program does not accept the flags of `load`. --help comes last, so that the flags before it are parsed and nothing is run.
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

func readRedquake(_ work, stdout []byte) (figures, error) {
	var out struct {
		Outcome string
		Total   struct {
			Requests, OK int
			Throughput   float64                     `json:"throughputPerSecond"`
			Latency      *struct{ P50, P99 float64 } `json:"latencySeconds"` // absent with the recording off
		}
	}
	if err := json.Unmarshal(stdout, &out); err != nil {
		return figures{}, fmt.Errorf("redquake: %w", err)
	}
	if out.Outcome != "Finished" || out.Total.OK != out.Total.Requests {
		return figures{}, fmt.Errorf("redquake: %s, %d of %d requests answered well", out.Outcome, out.Total.OK, out.Total.Requests)
	}
	f := figures{requests: out.Total.OK, perSecond: out.Total.Throughput}
	if s := out.Total.Latency; s != nil {
		f.p50, f.p99 = s.P50*1e6, s.P99*1e6
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
