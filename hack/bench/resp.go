package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/redquake/redquake/internal/testing/installed"
)

// respBenchmark is resp-benchmark of PyPI, on one core as the others. It writes the 99th percentile
// only, and has no TLS.
func respBenchmark() tool {
	path, err := installed.Find(nameResp)
	t := tool{
		name:    nameResp,
		keys:    "key_%010d",
		version: firstLine(path, "--version"),
		can:     func(w *work) bool { return !w.secured && w.shards == 0 },
		args: func(w *work) []string {
			args := []string{
				path, "-h", "127.0.0.1", "-p", strconv.Itoa(w.port), "-c", strconv.Itoa(w.connections),
				"-n", strconv.Itoa(w.requests), "-P", strconv.Itoa(w.pipeline), "--cores", "0",
			}
			if w.open() {
				args = append(args, "-t", strconv.Itoa(w.rate))
			}
			if w.get {
				return append(args, fmt.Sprintf("GET {key uniform %d}", keys))
			}
			return append(args, fmt.Sprintf("SET {key uniform %d} {value %d}", keys, w.valueBytes))
		},
		read: readRespBenchmark,
	}
	if err != nil {
		t.missing = err.Error()
	}
	return t
}

var respSummary = regexp.MustCompile(`qps: (\d+), conn: \d+, cnt: (\d+), avg: \S+, p99: (\S+)\s*$`)

// readRespBenchmark reads the last line; those before it tell the progress.
func readRespBenchmark(_ *work, stdout []byte) (figures, error) {
	m := respSummary.FindSubmatch(stdout)
	if m == nil {
		return figures{}, fmt.Errorf("resp-benchmark wrote %q", stdout)
	}
	perSecond, err1 := strconv.ParseFloat(string(m[1]), 64)
	requests, err2 := strconv.Atoi(string(m[2]))
	p99, err3 := time.ParseDuration(string(m[3]))
	return figures{
		requests:  requests,
		perSecond: perSecond,
		p99:       float64(p99) / float64(time.Microsecond),
	}, errors.Join(err1, err2, err3)
}
