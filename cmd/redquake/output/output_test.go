package output

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/golden"
)

// ms is a number of milliseconds.
func ms(n float64) result.Seconds { return result.Seconds(n * float64(time.Millisecond)) }

// full is a run with all kinds of events; quiet one without any.
func full() *result.Load {
	return &result.Load{
		Version: result.LoadVersion,
		Outcome: result.Interrupted, Message: "by the user",
		Verdict: "Inconclusive", Why: "the load did not run to its end: by the user",
		Objectives: []result.Objective{
			{Name: "minThroughput", Unit: result.UnitPerSecond, Limit: 2000, Actual: new(2972.67), Met: new(true)},
			{
				Name:    "maxLatencyP99",
				Unit:    result.UnitSeconds,
				Limit:   0.001,
				Actual:  new(0.001904),
				Met:     new(false),
				Message: "maxLatencyP99 is 1.9ms, limit 1ms",
			},
			{Name: "maxErrorRate", Unit: result.UnitShare, Limit: 0.05, Actual: new(0.01319), Met: new(true)},
			{
				Name:    "maxLostWrites",
				Unit:    result.UnitCount,
				Message: "maxLostWrites cannot be evaluated: its figure was not measured",
			},
		},
		Start:   time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC),
		Elapsed: ms(42_000), Planned: ms(60_000), Measured: ms(30_000),
		Target: result.Target{
			Addresses: []string{"127.0.0.1:6379"},
			Topology:  "Standalone",
			Server:    "redis",
			Version:   "7.0.15",
			Servers:   []result.Server{{Address: "127.0.0.1:6379", Role: "primary"}},
		},
		Asked:   result.Asked{Shape: "open loop, 3000 requests/s"},
		Latency: result.ResponseTime,
		Total: result.Operation{
			Name:       "all",
			Requests:   90_372,
			OK:         89_180,
			Failed:     12,
			Unknown:    1100,
			Dropped:    80,
			Throughput: 2972.67,
			ErrorRate:  0.01319,
			Latency: &result.Quantiles{
				P50: ms(0.412), P90: ms(0.6), P95: ms(0.8), P99: ms(1.904), P999: ms(980), P9999: ms(1200), Max: ms(1204),
			},
			Service: &result.Quantiles{
				P50: ms(0.2), P90: ms(0.3), P95: ms(0.35), P99: ms(0.41), P999: ms(1.2), P9999: ms(800), Max: ms(900),
			},
			Stalled: &result.Stalled{
				Pod:        1,
				Length:     ms(43),
				Count:      5,
				Longest:    ms(12),
				Latency:    &result.Quantiles{P50: ms(0.411), P90: ms(0.59), P99: ms(0.7), P999: ms(970), Max: ms(1193)},
				Throughput: 2978.1,
				ErrorRate:  0.0125,
			},
		},
		Operations: []result.Operation{
			{
				Name:       "set",
				Requests:   9000,
				OK:         8900,
				Failed:     12,
				Unknown:    88,
				Throughput: 296.67,
				Latency:    &result.Quantiles{P50: ms(0.5), P90: ms(0.7), P99: ms(2), P999: ms(981), Max: ms(1204)},
			},
			{
				Name:       "get",
				Requests:   81_372,
				OK:         80_280,
				Unknown:    1012,
				Dropped:    80,
				Throughput: 2676,
				Latency:    &result.Quantiles{P50: ms(0.4), P90: ms(0.6), P99: ms(1.9), P999: ms(979), Max: ms(1203)},
			},
		},
		Errors: []result.ErrorCount{{Class: "timeout", Count: 1100}, {Class: "readonly", Count: 12}},
		MaxLag: ms(1100),
		LongestGap: &result.Gap{
			At:      ms(20_100),
			Length:  ms(1210),
			AtLeast: ms(1200),
			AtMost:  ms(1215),
			Open:    true,
			Of:      "Writes",
		},
		WriteGap: &result.Gap{At: ms(20_100), Length: ms(1210), AtLeast: ms(1200), AtMost: ms(1215), Open: true},
		ProbeGap: &result.Gap{At: ms(20_101), Length: ms(1190), AtLeast: ms(1190), AtMost: ms(1190)},

		LongestShardGap: &result.ShardGap{
			Shard: 2,
			Gap:   result.Gap{At: ms(20_050), Length: ms(1260), AtLeast: ms(1260), AtMost: ms(1260)},
		},

		Anomalies: []result.Anomaly{{At: ms(25_000), Length: ms(2100), Dip: 0.41}},
		Redis:     &result.Redis{MaxCPU: 930, MaxMainThreadCPU: 910, MaxMemory: 1747 << 20, EvictedKeys: 3, Restarts: 1},
		Servers: []result.ServerUse{
			{
				Address:          "10.0.0.1:6379",
				Role:             "primary",
				Shard:            new(0),
				CPU:              result.CPU{Mean: 850, Max: 930},
				MainThreadCPU:    &result.CPU{Mean: 820, Max: 910},
				Memory:           1747 << 20,
				RSS:              1830 << 20,
				BytesIn:          312_500,
				BytesOut:         1_204_800,
				IOThreadedReads:  new(0.13),
				IOThreadedWrites: new(0.22),
				SlowCommands:     new(int64(7)),
				Slowest:          []result.SlowCommand{{Command: "KEYS", Took: ms(31.2), At: ms(12_000), Count: 7}},
				Restarts:         1,
			},
			{
				Address: "10.0.0.2:6379",
				Role:    "replica",
				Shard:   new(0),
				CPU:     result.CPU{Mean: 120, Max: 140},
				Memory:  1745 << 20,
				RSS:     1800 << 20,
				BytesIn: 301_000,
			},
		},
		RoundTrip:  &result.RoundTrip{Idle: new(ms(0.1)), UnderLoad: new(ms(0.15)), ShareOfLatency: new(0.5)},
		LoadPodCPU: &result.CPU{Mean: 310, Max: 450, Limit: 500},
		Pods: []result.PodsUse{
			{Name: "api", Count: 2, CPU: result.CPU{Mean: 870, Max: 990, Limit: 1000}, Memory: 412 << 20},
		},
		Trend:  "▇▇▇▇▁▁▁▄▇▇",
		Doubts: []impact.Doubt{{Reason: "Interrupted", Message: "the load did not run to its end: by the user"}},
		Notes:  []string{"the load of 3 pods was sent by this process"},
	}
}

func quiet() *result.Load {
	op := result.Operation{
		Name: "incr", Requests: 1000, OK: 1000, Throughput: 100,
		Latency: &result.Quantiles{P50: ms(0.031), P90: ms(0.04), P99: ms(0.0994), P999: ms(0.2), Max: ms(0.25)},
	}
	total := op
	total.Name = "all"
	return &result.Load{
		Version:  result.LoadVersion,
		Outcome:  result.Finished,
		Start:    time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC),
		Elapsed:  ms(10_000),
		Planned:  ms(10_000),
		Measured: ms(10_000),
		Target: result.Target{
			Addresses:   []string{"redis:6379", "redis-1:6379"},
			NotObserved: "INFO: NOPERM this user has no permissions to run the 'info' command",
		},
		Asked:      result.Asked{Shape: "closed loop, 10 users"},
		Latency:    result.ServiceTime,
		Total:      total,
		Operations: []result.Operation{op},
		Errors:     []result.ErrorCount{},
	}
}

// dead is a run in which no request succeeded.
func dead() *result.Load {
	r := quiet()
	r.Target.NotObserved = ""
	r.Outcome, r.Message = result.Failed, "TargetUnreachable: nothing answers at redis:6379"
	r.Operations[0] = result.Operation{Name: "incr", Requests: 5, Failed: 5, ErrorRate: 1}
	r.Total = r.Operations[0]
	r.Errors = []result.ErrorCount{{Class: "refused", Count: 5}}
	r.LongestGap = &result.Gap{Length: ms(10_000), AtLeast: ms(10_000), AtMost: ms(10_000), Open: true}
	return r
}

func TestLoad(t *testing.T) {
	for name, run := range map[string]*result.Load{"full": full(), "quiet": quiet(), "dead": dead()} {
		t.Run(name, func(t *testing.T) {
			var object bytes.Buffer
			if err := WriteJSON(&object, run); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, filepath.Join("testdata", "load_"+name+".json"), object.String())

			var back result.Load
			if err := json.Unmarshal(object.Bytes(), &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(run, &back); diff != "" {
				t.Errorf("JSON loses something (-written +read):\n%s", diff)
			}
		})
	}
}
