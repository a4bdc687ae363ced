package main

import (
	"debug/dwarf"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// memtier gets one thread with all connections: the others have no more than one for the network
// either. Only a release build is compared.
func memtier(program string) tool {
	// it refuses key 0
	t := tool{
		name:     nameMemtier,
		keys:     "rq:%d",
		firstKey: 1,
		read:     readMemtier,
		can:      func(*work) bool { return true },
	}
	path, err := exec.LookPath(program)
	if err != nil {
		t.missing = program + " is not on PATH"
		return t
	}
	t.version = firstLine(path, "--version")
	build, err := releaseBuild(t.version, producers(path))
	if err != nil {
		t.missing = err.Error() + ": see docs/benchmarks.md for a release build"
		return t
	}
	t.version += ", " + build
	t.args = func(w *work) []string {
		ratio := "1:0"
		if w.get {
			ratio = "0:1"
		}
		clients := w.connections / max(1, w.shards) // a client has a connection to each shard
		args := []string{
			path, "-s", "127.0.0.1", "-p", strconv.Itoa(w.port), "-t", "1", "-c", strconv.Itoa(clients),
			"-n", strconv.Itoa(w.requests / clients), "-d", strconv.Itoa(w.valueBytes), "--ratio", ratio,
			"--pipeline", strconv.Itoa(w.pipeline),
			"--key-prefix", "rq:", "--key-minimum", "1", "--key-maximum", strconv.Itoa(keys),
			"--key-pattern", "R:R", "--distinct-client-seed",
			"--hide-histogram", "--json-out-file", filepath.Join(w.folder, "memtier.json"),
		}
		if w.shards > 0 {
			args = append(args, "--cluster-mode")
		}
		if w.rate > 0 {
			args = append(args, "--rate-limiting", strconv.Itoa(w.rate/w.connections))
		}
		if w.tls != nil {
			args = append(args, "--tls", "--cacert", w.tls.File("ca.crt"), "--cert",
				w.tls.File("client.crt"), "--key", w.tls.File("client.key"))
		}
		return args
	}
	return t
}

func readMemtier(w *work, _ []byte) (figures, error) {
	text, err := os.ReadFile(filepath.Join(w.folder, "memtier.json"))
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
	return figures{
		requests:  t.Count,
		perSecond: t.PerSecond,
		p50:       p50 * 1000,
		p99:       p99 * 1000,
	}, nil
}

// unreleased is the version of memtier_benchmark's sources between two releases.
const unreleased = "v=255.255.255"

// optimization are GCC's flags of it; without one, it does not optimize.
var optimization = regexp.MustCompile(` -O\S*`)

// releaseBuild returns how a program was compiled, or why it is no release build. producers are the
// compilers' own words on each of its files, from its debug information. GCC's contain the flags.
func releaseBuild(version string, producers []string) (string, error) {
	if version == "" {
		return "", errors.New("memtier_benchmark does not run")
	}
	if slices.Contains(strings.Fields(version), unreleased) {
		return "", errors.New("this memtier_benchmark is no release, but " + unreleased)
	}
	known := slices.DeleteFunc(slices.Clone(producers), func(p string) bool {
		return !strings.HasPrefix(p, "GNU C")
	})
	if len(known) == 0 {
		return "optimization not known: no debug information of GCC", nil
	}
	level := ""
	for _, p := range known {
		flags := append([]string{" -O0"}, optimization.FindAllString(p, -1)...)
		level = flags[len(flags)-1] // of several, the last one counts
		if level == " -O0" || level == " -Og" || strings.Contains(p, " -fsanitize") {
			return "", fmt.Errorf("this memtier_benchmark was not compiled for speed: %s", p)
		}
	}
	return "compiled with" + level, nil
}

// producers are what compilers wrote into the debug information of a program; none if it has none.
func producers(path string) []string {
	file, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	data, err := file.DWARF()
	if err != nil {
		return nil
	}
	var list []string
	for reader := data.Reader(); ; reader.SkipChildren() {
		entry, err := reader.Next()
		if err != nil || entry == nil {
			return list
		}
		if producer, ok := entry.Val(dwarf.AttrProducer).(string); ok {
			list = append(list, producer)
		}
	}
}
