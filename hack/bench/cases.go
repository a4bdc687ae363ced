package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/testing/redistest"
)

// The same for every tool.
const keys = 100_000 // drawn uniformly at random; all of them exist beforehand

// openSeconds is for how long an open loop runs.
const openSeconds = 8

// Those of most cases.
const (
	usualConnections = 50
	usualBytes       = 32 // of a value
)

// work is a case: the task of a tool in one run.
type work struct {
	name        string
	get         bool // else SET
	pipeline    int
	connections int  // to all servers together
	shards      int  // of a cluster; 0 = a single server
	secured     bool // TLS
	details     bool // also with tools and settings of ours that the other cases leave out
	valueBytes  int
	rate        int // of an open loop, per second

	requests int
	address  string               // host:port of a server
	port     int                  // its port
	tls      *redistest.Authority // with TLS: client.crt, client.key and ca.crt are the client's
	folder   string               // for the tool's own files
}

// allCases are those of a round; requests are given without a pipeline and with one.
func allCases(single, piped int) []work {
	cases := []work{
		{name: "SET, pipeline 1", pipeline: 1, details: true},
		{name: "GET, pipeline 1", get: true, pipeline: 1, details: true},
		{name: "SET, pipeline 16", pipeline: 16, details: true},
		{name: "GET, pipeline 16", get: true, pipeline: 16, details: true},
		{name: "SET, pipeline 1, TLS", pipeline: 1, secured: true},
		{name: "SET, pipeline 16, TLS", pipeline: 16, secured: true},
		{name: "SET, pipeline 1, cluster of 3", pipeline: 1, shards: 3, connections: 48}, // 16 for each
		{name: "SET, pipeline 1, 1000 connections", pipeline: 1, connections: 1000},
		{name: "SET, values of 1 KiB", pipeline: 1, valueBytes: 1 << 10},
		{name: "SET, values of 16 KiB", pipeline: 1, valueBytes: 16 << 10},
		{name: "GET, values of 16 KiB", get: true, pipeline: 1, valueBytes: 16 << 10},
	}
	for _, rate := range []int{500, 2_000, 10_000, 30_000, 60_000} {
		cases = append(cases, work{
			name:     fmt.Sprintf("SET, open loop of %d/s", rate),
			pipeline: 1,
			rate:     rate,
		})
	}
	for i := range cases {
		c := &cases[i]
		c.connections = cmp.Or(c.connections, usualConnections)
		c.valueBytes = cmp.Or(c.valueBytes, usualBytes)
		switch {
		case c.rate > 0:
			c.requests = openSeconds * c.rate
		case c.pipeline > 1:
			c.requests = piped
		case c.valueBytes > usualBytes:
			c.requests = single / 4
		default:
			c.requests = single
		}
		// memtier_benchmark counts per connection, and all tools send the same
		c.requests -= c.requests % (c.connections * c.pipeline)
	}
	return cases
}

// matching are the cases that are named by one of the parts, separated by semicolons, or contain
// one that names none.
func matching(cases []work, parts string) []work {
	all := slices.Clone(cases)
	return slices.DeleteFunc(cases, func(c work) bool {
		return !slices.ContainsFunc(strings.Split(parts, ";"), func(part string) bool {
			part = strings.TrimSpace(part)
			named := slices.ContainsFunc(all, func(c work) bool { return c.name == part })
			return c.name == part || !named && strings.Contains(c.name, part)
		})
	})
}

// wanted reports whether a tool's name contains one of the parts, separated by commas; "" is
// contained in all.
func wanted(name, parts string) bool {
	return slices.ContainsFunc(strings.Split(parts, ","), func(part string) bool {
		return strings.Contains(name, part)
	})
}

// open reports whether the requests are sent at a rate, whatever the server does.
func (w *work) open() bool {
	return w.rate > 0
}

// describe tells what the name does not.
func (w *work) describe() string {
	text := fmt.Sprintf("%d requests over %d connections", w.requests, w.connections)
	if w.rate > 0 {
		text += fmt.Sprintf(" at %d/s", w.rate)
	}
	return text
}
