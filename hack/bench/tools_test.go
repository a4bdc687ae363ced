package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReadRedisBenchmark(t *testing.T) {
	const out = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"SET","77220.08","0.405","0.056","0.335","0.687","1.039","6.415"
`
	got, err := readRedisBenchmark(&work{requests: 5}, []byte(out))
	if want := (figures{requests: 5, perSecond: 77220.08, p50: 335, p99: 1039}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if _, err := readRedisBenchmark(&work{}, []byte("Error: connection refused\n")); err == nil {
		t.Error("an error message was taken for figures")
	}
}

func TestReadRespBenchmark(t *testing.T) {
	const out = "\x1b[F\x1b[2Kqps: 31033(overall 1657), conn: 50, cnt: 17376, avg: 29ms, p99: 0.39s\n" +
		"\x1b[F\x1b[2Kqps: 41706, conn: 50, cnt: 20000, avg: 1.2ms, p99: 6.9ms\n\n"
	got, err := readRespBenchmark(&work{}, []byte(out))
	if want := (figures{requests: 20000, perSecond: 41706, p99: 6900}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if _, err := readRespBenchmark(&work{}, []byte(out[:90])); err == nil {
		t.Error("the progress was taken for figures")
	}
}

func TestReadMemtier(t *testing.T) {
	const out = `{"ALL STATS": {"Totals": {"Count": 20000, "Ops/sec": 66555.3,
		"Percentile Latencies": {"p50.00": 0.5, "p99.00": 4.25, "Histogram log format": {"Compressed Histogram": "x"}}}}}`
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "memtier.json"), []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readMemtier(&work{folder: folder}, nil)
	if want := (figures{requests: 20000, perSecond: 66555.3, p50: 500, p99: 4250}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestReadRedquake(t *testing.T) {
	got, err := readRedquake(&work{},
		[]byte(
			`{"outcome":"Finished","total":{"requests":3,"ok":3,"throughputPerSecond":12.5,"latencySeconds":{"p50":0.0005,"p99":0.00425}}}`))
	if want := (figures{requests: 3, perSecond: 12.5, p50: 500, p99: 4250}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	got, err = readRedquake(&work{},
		[]byte(
			`{"outcome":"Finished","total":{"requests":3,"ok":3,"latencySeconds":{"p50":0.5,"p99":4},"serviceSeconds":{"p50":0.0005,"p99":0.004}}}`))
	if want := (figures{requests: 3, p50: 5e5, p99: 4e6, sent50: 500, sent99: 4000}); err != nil || got != want {
		t.Errorf("open loop: %+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{
		`{"outcome":"Failed","total":{"requests":3,"ok":3}}`, `{"outcome":"Finished","total":{"requests":3,"ok":2}}`,
		`no JSON`,
	} {
		if _, err := readRedquake(&work{}, []byte(bad)); err == nil {
			t.Errorf("%s was taken for figures", bad)
		}
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
	for _, name := range []string{"bench", "collect", "accuracy", "starvation"} {
		if _, err := replaceSection(string(text), name, ""); err != nil {
			t.Error(err)
		}
	}
}
