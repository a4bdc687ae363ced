package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadRedisBenchmark(t *testing.T) {
	const out = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"SET","77220.08","0.405","0.056","0.335","0.687","1.039","6.415"
`
	got, err := readRedisBenchmark(work{requests: 5}, []byte(out))
	if want := (figures{requests: 5, perSecond: 77220.08, p50: 335, p99: 1039}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if _, err := readRedisBenchmark(work{}, []byte("Error: connection refused\n")); err == nil {
		t.Error("an error message was taken for figures")
	}
}

func TestReadMemtier(t *testing.T) {
	const out = `{"ALL STATS": {"Totals": {"Count": 20000, "Ops/sec": 66555.3,
		"Percentile Latencies": {"p50.00": 0.5, "p99.00": 4.25, "Histogram log format": {"Compressed Histogram": "x"}}}}}`
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "memtier.json"), []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readMemtier(work{folder: folder}, nil)
	if want := (figures{requests: 20000, perSecond: 66555.3, p50: 500, p99: 4250}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestReadRedquake(t *testing.T) {
	got, err := readRedquake(work{}, []byte(`{"outcome":"Finished","total":{"requests":3,"ok":3,"throughputPerSecond":12.5,"latencySeconds":{"p50":0.0005,"p99":0.00425}}}`))
	if want := (figures{requests: 3, perSecond: 12.5, p50: 500, p99: 4250}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{
		`{"outcome":"Failed","total":{"requests":3,"ok":3}}`, `{"outcome":"Finished","total":{"requests":3,"ok":2}}`, `no JSON`,
	} {
		if _, err := readRedquake(work{}, []byte(bad)); err == nil {
			t.Errorf("%s was taken for figures", bad)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(tt.values); got != tt.want {
			t.Errorf("median of %v is %v, want %v", tt.values, got, tt.want)
		}
	}
}

func TestRatioTable(t *testing.T) {
	list := []result{
		{Case: "SET", Tool: "memtier_benchmark", CPUMicros: 4, RequestsPerSecond: 100},
		{Case: "SET", Tool: "redis-benchmark", CPUMicros: 2, RequestsPerSecond: 200},
		{Case: "SET", Tool: "redquake", CPUMicros: 3, RequestsPerSecond: 150},
	}
	got := ratioTable(list)
	for _, want := range []string{
		"CPU, redquake / memtier_benchmark | 0.75 |", "CPU, redquake / redis-benchmark | 1.50 |", "requests/s, redquake / redis-benchmark | 0.75 |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.Contains(got, "go-redis") {
		t.Errorf("go-redis was not measured, but is in\n%s", got)
	}
}

func TestReplaceSection(t *testing.T) {
	const page = "a\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nb\n"
	got, err := replaceSection(page, "bench", "new\n")
	if want := "a\n<!-- bench:begin -->\nnew\n<!-- bench:end -->\nb\n"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := replaceSection(page, "collect", "new\n"); err == nil {
		t.Error("a section that is not there was replaced")
	}
}

// TestPage: the page has every section that is to be written into it.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", docsFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bench", "collect", "accuracy"} {
		if _, err := replaceSection(string(text), name, ""); err != nil {
			t.Error(err)
		}
	}
}
