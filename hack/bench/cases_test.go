package main

import (
	"slices"
	"testing"
)

func TestMatching(t *testing.T) {
	for parts, want := range map[string]int{
		"": 16, "SET, pipeline 1": 1, "pipeline 16": 3, "TLS": 2, "TLS;cluster": 3, "SET, pipeline 1; open loop": 6,
		"GET, pipeline 1; GET": 3, "HGET": 0,
	} {
		if got := matching(allCases(1000, 1000), parts); len(got) != want {
			t.Errorf("%q: %d cases, want %d", parts, len(got), want)
		}
	}
}

// TestAllCases: every connection of every tool makes the same number of whole batches, in a cluster to each shard.
func TestAllCases(t *testing.T) {
	var names []string
	for _, c := range allCases(400_001, 2_000_001) {
		if c.requests == 0 || c.requests%(c.connections*c.pipeline) != 0 || c.connections%max(1, c.shards) != 0 {
			t.Errorf("%s: %d requests, pipeline %d, %d connections, %d shards", c.name, c.requests, c.pipeline, c.connections,
				c.shards)
		}
		if c.shards > mostServers {
			t.Errorf("%s: %d shards, at most %d", c.name, c.shards, mostServers)
		}
		if slices.Contains(names, c.name) {
			t.Errorf("two cases %s", c.name)
		}
		names = append(names, c.name)
	}
}
