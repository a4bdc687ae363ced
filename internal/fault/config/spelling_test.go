package config

import "testing"

func TestSameValue(t *testing.T) {
	const limits = "normal 1048576 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"
	for _, tc := range []struct {
		name, asked, shown string
		want               bool
	}{
		{"maxmemory", "100mb", "104857600", true},
		{"maxmemory", "100MB", "104857601", false},
		{"maxmemory", "0", "104857600", false},
		{"timeout", "300", "300", true},
		{"timeout", "300", "30", false},
		{"slowlog-log-slower-than", "-1", "-1", true},
		{"slowlog-log-slower-than", "-1", "1", false},
		{"appendonly", "YES", "yes", true},
		{"appendonly", "yes", "no", false},
		{"maxmemory-policy", "ALLKEYS-LRU", "allkeys-lru", true},
		{"maxmemory-policy", "allkeys-lru", "allkeys-lfu", false},
		{"notify-keyspace-events", "KEA", "AKE", true},
		{"notify-keyspace-events", "AKEn", "AKE", true},
		{"notify-keyspace-events", "KEn", "KE", false},
		{"notify-keyspace-events", "", "AKE", false},
		{"client-output-buffer-limit", "normal 1mb 0 0", limits, true},
		{"client-output-buffer-limit", "replica 256mb 64mb 60 normal 1mb 0 0", limits, true},
		{"client-output-buffer-limit", "normal 2mb 0 0", limits, false},
		{"latency-tracking-info-percentiles", "99.90 50.0", "99.9 50", true},
		{"latency-tracking-info-percentiles", "99.9", "99.9 50", false},
		{"shutdown-on-sigterm", "now force", "force now", true},
		{"oom-score-adj", "relative", "yes", true},
		{"oom-score-adj-values", "0 200 800", "0 800 200", false},
		{"hz", "1000", "500", true},
		{"hz", "1000", "10", false},
		{"repl-backlog-size", "1", "16384", true},
		{"repl-backlog-size", "1mb", "16384", false},
	} {
		if got := sameValue(tc.name, tc.asked, tc.shown); got != tc.want {
			t.Errorf("%s %q, shown as %q: %t, want %t", tc.name, tc.asked, tc.shown, got, tc.want)
		}
	}
}
