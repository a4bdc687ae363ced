package usage

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

const second = int64(time.Second)

// recorded returns a record of seconds intervals of 1 s; fill adds the readings of each.
func recorded(t *testing.T, seconds int, fill func(i int64, iv *record.Interval)) *merged.Series {
	t.Helper()
	s := merged.New("run", time.Unix(0, 0), time.Second, []string{"get"}, 1)
	for i := range int64(seconds) {
		iv := &record.Interval{
			Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstOK: -1, LastOK: -1, FirstError: -1, LastError: -1,
		}
		fill(i, iv)
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// server is a reading in which every counter grew by a fixed amount per second since the process began.
func server(at int64, address, runID string, since int64) record.Server {
	n := at - since
	return record.Server{
		At:                   at * second,
		Address:              address,
		RunID:                runID,
		Role:                 "master",
		Shard:                1,
		CPUSeconds:           0.5 * float64(n),
		CPUMainThreadSeconds: 0.25 * float64(n),
		UsedMemory:           (at + 1) << 20,
		UsedMemoryRSS:        (at + 2) << 20,
		NetInput:             1000 * n,
		NetOutput:            3000 * n,
		TotalReads:           100 * n,
		IOThreadedReads:      25 * n,
		TotalWrites:          200 * n,
		SlowLog:              record.SlowLog{Total: n},
	}
}

// CPU, rates and shares are those of the processes that ran, whatever restarted in between.
func TestServersThroughARestart(t *testing.T) {
	s := recorded(t, 20, func(i int64, iv *record.Interval) {
		switch {
		case i < 8:
			iv.Servers = []record.Server{server(i, "a:1", "first", -100)}
		case i >= 12:
			iv.Servers = []record.Server{server(i, "a:1", "second", 11)}
		}
	})
	got := Servers(s, Window{From: 5 * time.Second, To: 20 * time.Second})
	want := []Server{{
		Address:          "a:1",
		Role:             "master",
		CPU:              CPU{Mean: 0.5, Max: 0.5},
		MainThreadCPU:    CPU{Mean: 0.25, Max: 0.25},
		Memory:           20 << 20,
		RSS:              21 << 20,
		BytesIn:          1000,
		BytesOut:         3000,
		IOThreadedReads:  0.25,
		IOThreadedWrites: 0,
		Slow:             9,
		Restarts:         1,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestServersInTheWindow(t *testing.T) {
	s := recorded(t, 20, func(i int64, iv *record.Interval) {
		busy := server(i, "b:1", "b", 0)
		busy.Role, busy.CPUMainThreadSeconds, busy.TotalWrites = "slave", 0, 0
		if i >= 15 { // outside of the window
			busy.CPUSeconds += 100
			busy.SlowLog.Commands = []record.SlowCommand{{Command: "KEYS", Count: 9, WorstMicros: 1e6, At: busy.At}}
		}
		switch i {
		case 11:
			busy.SlowLog.Commands = []record.SlowCommand{
				{Command: "SORT", Count: 2, WorstMicros: 20000, At: busy.At},
				{Command: "KEYS", Count: 9, WorstMicros: 900, At: 9 * second},
			}
		case 12:
			busy.SlowLog.Commands = []record.SlowCommand{
				{Command: "EVAL", Count: 1, WorstMicros: 30000, At: busy.At},
				{Command: "SORT", Count: 1, WorstMicros: 10000, At: busy.At},
			}
		case 13:
			busy.SlowLog.Commands = []record.SlowCommand{{Command: "SORT", Count: 1, WorstMicros: 40000, At: busy.At}}
		}
		reset := server(i, "c:1", "c", 0)
		reset.Shard, reset.SlowLog.Total = 2, -1 // the user may not read the slow log
		if i >= 12 {                             // CONFIG RESETSTAT
			reset.NetInput = 1000 * (i - 12)
			reset.NetOutput = 3000 * (i - 12)
			reset.TotalReads = 100 * (i - 12)
			reset.IOThreadedReads = 25 * (i - 12)
		}
		iv.Servers = []record.Server{busy, reset}
		if i == 12 {
			iv.Servers = append(iv.Servers, server(i, "once:1", "d", 0)) // a single reading tells no usage
		}
	})
	got := Servers(s, Window{From: 10 * time.Second, To: 14500 * time.Millisecond})
	want := []Server{
		{
			Address:          "b:1",
			Role:             "slave",
			CPU:              CPU{Mean: 0.5, Max: 0.5},
			Memory:           15 << 20,
			RSS:              16 << 20,
			BytesIn:          1000,
			BytesOut:         3000,
			IOThreadedReads:  0.25,
			IOThreadedWrites: -1,
			Slow:             4,
			Slowest: []SlowCommand{
				{"SORT", 40 * time.Millisecond, 13 * time.Second, 4},
				{"EVAL", 30 * time.Millisecond, 12 * time.Second, 1},
			},
		},
		{
			Address:         "c:1",
			Role:            "master",
			Shard:           1,
			CPU:             CPU{Mean: 0.5, Max: 0.5},
			MainThreadCPU:   CPU{Mean: 0.25, Max: 0.25},
			Memory:          15 << 20,
			RSS:             16 << 20,
			BytesIn:         1000,
			BytesOut:        3000,
			IOThreadedReads: 0.25,
			Slow:            -1,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLoadPods(t *testing.T) {
	s := recorded(t, 20, func(i int64, iv *record.Interval) {
		use := record.AgentUse{
			At:            (i + 1) * second,
			CPUSeconds:    0.2 * float64(i),
			CPULimit:      0.5,
			IdleRoundTrip: 120_000,
			RoundTrip:     300_000,
		}
		if i >= 13 { // from 13 to 17 s: 0.4 cores, then 0.2 again
			use.CPUSeconds += 0.2 * float64(min(i-12, 4))
		}
		if i >= 15 {
			use.RoundTrip = 200_000
		}
		iv.Agents = []record.AgentUse{use}
	})
	window := Window{From: 10 * time.Second, To: 20 * time.Second}
	got, ok := LoadPods(s, window)
	if diff := cmp.Diff(CPU{Mean: 0.28, Max: 0.36, Limit: 0.5}, rounded(got)); diff != "" || !ok {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, ok := LoadPods(s, Window{From: 30 * time.Second, To: 40 * time.Second}); ok {
		t.Error("a usage without readings")
	}
	lower := recorded(t, 10, func(i int64, iv *record.Interval) {
		iv.Agents = []record.AgentUse{{At: (i + 1) * second, CPULimit: float64(2 - i/5)}} // 2 cores, from 6 s on 1
	})
	if got, _ := LoadPods(lower, Window{To: 10 * time.Second}); got.Limit != 1 {
		t.Errorf("the lowest limit is %v", got.Limit)
	}
	trip, ok := RoundTripOf(s, window)
	if want := (RoundTrip{
		Idle:      120 * time.Microsecond,
		Farthest:  120 * time.Microsecond,
		UnderLoad: 300 * time.Microsecond,
	}); trip != want || !ok || trip.Network() != want.Idle {
		t.Errorf("%+v, the network's part %s; want %+v", trip, trip.Network(), want)
	}
}

// TestWorstOfALongRun: few readings of a long run are kept; what a server used at most for 20 s, and its highest
// memory, stay.
func TestWorstOfALongRun(t *testing.T) {
	const seconds = 3 * 3600
	s := recorded(t, seconds, func(i int64, iv *record.Interval) {
		use, reading := record.AgentUse{At: i * second, CPUSeconds: 0.2 * float64(i)}, server(i, "a:1", "a", 0)
		over := float64(min(max(0, i-5001), 20)) // from 5001 to 5021 s
		use.CPUSeconds += 0.7 * over
		reading.CPUSeconds, reading.CPUMainThreadSeconds = reading.CPUSeconds+0.5*over, reading.CPUMainThreadSeconds+0.7*over
		if reading.UsedMemory, reading.UsedMemoryRSS = 100, 200; i == 5007 {
			reading.UsedMemory, reading.UsedMemoryRSS = 1000, 2000
		}
		iv.Agents, iv.Servers = []record.AgentUse{use}, []record.Server{reading}
	})
	if n := len(s.Servers()); n > seconds/2 {
		t.Fatalf("%d readings are kept: nothing is lost", n)
	}
	w := Window{To: seconds * time.Second}
	got := Servers(s, w)[0]
	if got.Memory != 1000 || got.RSS != 2000 || rounded(got.CPU).Max != 1 || rounded(got.MainThreadCPU).Max != 0.95 {
		t.Errorf("%+v", got)
	}
	if cpu, _ := LoadPods(s, w); rounded(cpu).Max != 0.9 {
		t.Errorf("load pod %+v", cpu)
	}
	if cpu, _ := LoadPods(s, Window{From: 5030 * time.Second, To: seconds * time.Second}); rounded(cpu).Max != 0.2 {
		t.Errorf("load pod after it %+v", cpu)
	}
}

func rounded(c CPU) CPU {
	r := func(x float64) float64 { return float64(int(1000*x+0.5)) / 1000 }
	return CPU{r(c.Mean), r(c.Max), r(c.Limit)}
}

func TestNetworkPartOfTheRoundTrip(t *testing.T) {
	for want, r := range map[time.Duration]RoundTrip{
		1: {Idle: 1, UnderLoad: 3},
		2: {Idle: 3, UnderLoad: 2}, // the server was busy before the load
		4: {UnderLoad: 4},
		5: {Idle: 5},
		0: {},
	} {
		if got := r.Network(); got != want {
			t.Errorf("%+v: %d, want %d", r, got, want)
		}
	}
}

func TestObservedPods(t *testing.T) {
	s := recorded(t, 1, func(int64, *record.Interval) {})
	use := func(at int, name, pod, container string, cpu, limit float64, memory int64) record.PodUse {
		return record.PodUse{
			At: int64(at) * second, Window: 10 * second, Name: name, Pod: pod, Container: container, CPU: cpu, MaxCPU: cpu,
			CPULimit: limit, Memory: memory,
		}
	}
	s.AddPodUses([]record.PodUse{
		use(5, "api", "api-0", "app", 9, 1, 900),                                                    // before the window
		use(16, "api", "api-0", "app", 0.5, 1, 100), use(16, "api", "api-0", "proxy", 0.1, 0.5, 50), // 0.6 of 1.5 cores
		use(26, "api", "api-0", "app", 0.7, 1, 200), use(26, "api", "api-0", "proxy", 0.1, 0.5, 50), // 0.8
		use(26, "api", "api-1", "app", 0.1, 1, 100), use(26, "api", "api-1", "proxy", 0, 0.5, 10), // 0.1
		use(26, "db", "db-0", "mysql", 2, 0, 1000),
		use(40, "api", "api-0", "app", 9, 1, 900), // after it
		// a pod with a container without a limit has none
		use(20, "mixed", "mixed-0", "app", 0.5, 1, 70), use(20, "mixed", "mixed-0", "proxy", 0.5, 0, 20),
		// the lowest limit, the highest memory
		use(16, "resized", "resized-0", "app", 0.5, 2, 80), use(26, "resized", "resized-0", "app", 0.5, 1, 60),
	})
	want := []Pods{
		{Name: "api", Count: 2, CPU: CPU{Mean: 0.5, Max: 0.8, Limit: 1.5}, Memory: 250},
		{Name: "db", Count: 1, CPU: CPU{Mean: 2, Max: 2}, Memory: 1000},
		{Name: "mixed", Count: 1, CPU: CPU{Mean: 1, Max: 1}, Memory: 90},
		{Name: "resized", Count: 1, CPU: CPU{Mean: 0.5, Max: 0.5, Limit: 1}, Memory: 80},
	}
	got := ObservedPods(s, Window{From: 10 * time.Second, To: 30 * time.Second})
	for i := range got {
		got[i].CPU = rounded(got[i].CPU)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
