package bottleneck

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

const step = 100 * time.Millisecond

// figures describe a run with constant rates.
type figures struct {
	response, service time.Duration // service 0 = closed loop
	rate              uint64        // requests/s
	connections       int
	agent             record.AgentUse // cumulative values per second; others unchanged
	server            record.Server   // counters per second; others unchanged
	oom               uint64          // errors per interval
	tallies           []uint64        // per interval
	pods              int
	unobserved        []record.Unobserved
}

// idle is a run in which no component is at its limit.
func idle() figures {
	return figures{
		response: time.Millisecond, rate: 1000, connections: 50, pods: 1,
		agent: record.AgentUse{CPUSeconds: 0.3, CPULimit: 1, BusyThreads: 2, RoundTrip: int64(300 * time.Microsecond)},
		server: record.Server{
			Address: "redis:6379", RunID: "r", CPUSeconds: 0.4, CPUMainThreadSeconds: 0.35, CommandsProcessed: 1000,
			MaxClients: 10000, ConnectedClients: 51,
		},
	}
}

// run makes the record of length.
func (f figures) run(t *testing.T, length time.Duration) *merged.Series {
	t.Helper()
	s := merged.New("run", time.Unix(0, 0), step, []string{"get"}, f.pods)
	if f.tallies != nil {
		s.SetTallies([]string{"inRedis", "inBackend"})
	}
	for i := range int64(length / step) {
		for pod := range f.pods {
			if err := s.Add(pod, f.interval(i, pod)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for pod := range f.pods {
		s.Finish(pod)
	}
	return s
}

func (f figures) interval(i int64, pod int) *record.Interval {
	iv := &record.Interval{
		Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstError: -1, LastError: -1, FirstOK: -1, LastOK: -1,
		Connections: f.connections,
	}
	n := f.rate / 10
	op := &iv.Ops[0]
	op.OK, op.Sent, op.Due = n, n, n
	var h histogram.Histogram
	h.RecordN(int64(f.response), uint32(n))
	op.Latency = h.AppendTo(nil)
	if f.service > 0 {
		h.Reset()
		h.RecordN(int64(f.service), uint32(n))
		op.Service = h.AppendTo(nil)
	}
	op.Fail, op.Errors[record.ClassOOM] = f.oom, f.oom
	iv.Tallies = f.tallies
	at := (i + 1) * int64(step)
	since := time.Duration(at).Seconds()
	a := f.agent
	a.At = at + int64(20*time.Millisecond)
	a.CPUSeconds, a.ThrottledSeconds, a.WaitedSeconds = a.CPUSeconds*since, a.ThrottledSeconds*since, a.WaitedSeconds*since
	if iv.Agents = []record.AgentUse{a}; a.Pod < 0 {
		iv.Agents = nil
	}
	iv.Unobserved = f.unobserved
	if pod > 0 || i%10 != 0 || f.server.RunID == "" {
		return iv
	}
	r, seconds := f.server, i/10
	r.At = at
	r.CPUSeconds, r.CPUMainThreadSeconds = r.CPUSeconds*since, r.CPUMainThreadSeconds*since
	for _, p := range []*int64{
		&r.CommandsProcessed, &r.AOFDelayedFsync, &r.EvictedKeys, &r.OOMErrors,
		&r.RejectedConnections,
		&r.TotalReads, &r.TotalWrites, &r.IOThreadedReads, &r.IOThreadedWrites, &r.SlowLog.Total, &r.AOFFlushMicros,
		&r.AOFSize, &r.MisconfErrors,
	} {
		*p *= seconds
	}
	r.Latency = nil
	for _, e := range f.server.Latency {
		e.Unix *= seconds // 0: the same event all the time
		r.Latency = append(r.Latency, e)
	}
	iv.Servers = []record.Server{r}
	return iv
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		name     string
		change   func(*figures, *Input)
		want     Component
		evidence string // part of it
	}{
		{
			"idle",
			func(*figures, *Input) {},
			None,
			"the busiest load pod used 30% of its CPU, a PING takes at least 0.30ms, 30% of the median latency of 1.00ms, " +
				"Redis' main thread was 35% busy",
		},
		{
			"agent at its limit", func(f *figures, _ *Input) {
				f.agent.CPUSeconds, f.agent.CPULimit = 0.095,
					0.1
			}, LoadGenerator,
			"cores of CPU, 95% of its limit of 0.10 cores",
		},
		{"agent's threads busy", func(f *figures, _ *Input) {
			f.agent.CPUSeconds, f.agent.CPULimit = 1.9,
				0
		}, LoadGenerator, "95% of one core for each of 2 threads"},
		{
			"agent throttled",
			func(f *figures, _ *Input) { f.agent.ThrottledSeconds = 0.2 },
			LoadGenerator,
			"throttled by its CPU limit of 1.00 cores for 20% of the time",
		},
		{
			"one of two agents",
			func(f *figures, _ *Input) { f.pods = 2; f.agent.CPUSeconds = 0.91 },
			LoadGenerator,
			"load pod 0 used 0.91 cores",
		},
		{"sent late", func(f *figures, _ *Input) {
			f.response = 10 * time.Millisecond
			f.service = 2 * time.Millisecond
		}, LoadGenerator, "and more after their arrival, 80% of the p99 of 10.0ms, while 4% of the connections"},
		{"late, as all connections are busy", func(f *figures, _ *Input) {
			f.response, f.service, f.connections = 10*time.Millisecond, 2*time.Millisecond, 2
		}, None, ""},
		{"late by less than a wake-up", func(f *figures, _ *Input) {
			f.response = 5 * time.Millisecond
			f.service = time.Millisecond
		}, None, ""},
		{
			"far away",
			func(f *figures, _ *Input) { f.agent.RoundTrip = 900_000 },
			Network,
			"takes 0.90ms, 90% of the median latency of 1.00ms; Redis' main thread was 35% busy",
		},
		{"nearby, and a PING waits for the CPU of its node", func(f *figures, _ *Input) {
			f.agent.IdleRoundTrip, f.agent.RoundTrip = 100_000, 1_400_000
		}, None, "a PING takes at least 0.10ms, 10% of the median latency of 1.00ms"},
		{
			"nearby, and a PING waits as the requests do",
			func(f *figures, _ *Input) {
				f.agent.IdleRoundTrip, f.agent.RoundTrip = 100_000, 900_000
			},
			None,
			"a PING takes at least 0.10ms, 10% of the median latency of 1.00ms (under load at least 0.90ms: it waits for " +
				"Redis, for a CPU, or for a full network), Redis' main thread",
		},
		{"far away, and a PING waits, too", func(f *figures, _ *Input) {
			f.agent.IdleRoundTrip, f.agent.RoundTrip = 900_000, 1_100_000
		}, Network, "90% of the median latency"},
		{"nearby, and Redis evicts", func(f *figures, _ *Input) {
			f.agent.RoundTrip, f.server.EvictedKeys = 900_000,
				500
		}, Memory, ""},
		{"farther away, and Redis evicts", func(f *figures, _ *Input) {
			f.response, f.agent.RoundTrip, f.server.EvictedKeys = 50*time.Millisecond, 45_000_000, 500
		}, Network, ""},
		{"made far away", func(f *figures, in *Input) {
			f.response = 20 * time.Millisecond
			in.AddedLatency = 19 * time.Millisecond
		}, Network, "takes 19.3ms"},
		{"made far away, and a PING waits", func(f *figures, in *Input) {
			f.response, in.AddedLatency, f.agent.IdleRoundTrip, f.agent.RoundTrip = 20*time.Millisecond, 19*time.Millisecond,
				300_000, 3_000_000
		}, Network, "takes 19.3ms"},
		{"far away, open loop", func(f *figures, _ *Input) {
			f.service, f.response = time.Millisecond, 1050*time.Microsecond
			f.agent.RoundTrip = 900_000
		}, Network, "90% of the median"},
		{
			"the PING waited for a busy thread",
			func(f *figures, _ *Input) { f.agent.RoundTrip, f.server.CPUMainThreadSeconds = 900_000, 0.95 },
			RedisMainThread,
			"95% of one core, 1000 commands/s",
		},
		{
			"Redis at its container's limit",
			func(_ *figures, in *Input) { in.ServerCPULimit = 0.42 },
			CPULimit,
			"Redis used 0.40 cores of CPU, 95% of its container's limit of 0.42 cores",
		},
		{"Redis below its limit", func(_ *figures, in *Input) { in.ServerCPULimit = 0.5 }, None, ""},
		{"slow commands", func(f *figures, _ *Input) {
			f.server.CPUMainThreadSeconds, f.server.SlowLog = 0.99, record.SlowLog{
				Total:    5,
				Commands: []record.SlowCommand{{Command: "KEYS", WorstMicros: 85_000}},
			}
		}, RedisMainThread, "slow commands, the longest KEYS with 85.0ms"},
		{
			"a server that does not report its main thread",
			func(f *figures, _ *Input) { f.server.CPUMainThreadSeconds, f.server.CPUSeconds = 0, 0.93 },
			RedisMainThread,
			"the process (it does not report",
		},
		{"I/O threads", func(f *figures, _ *Input) {
			f.server.CPUMainThreadSeconds, f.server.CPUSeconds = 0.95, 2.5
			f.server.TotalReads, f.server.IOThreadedReads, f.server.TotalWrites, f.server.IOThreadedWrites = 100, 0, 100, 75
		}, RedisMainThread, "I/O threads made 0% of the reads and 75% of the writes, the whole process used 2.50 cores"},
		{"delayed fsync", func(f *figures, _ *Input) { f.server.AOFDelayedFsync = 1 }, Disk, "aof_delayed_fsync"},
		{"fsync events", func(f *figures, _ *Input) {
			f.server.AOFFsync, f.server.Latency = "always", []record.LatencyEvent{
				{Name: "aof-fsync-always", Unix: 1, LatestMillis: 25},
			}
		}, Disk, "latency event aof-fsync-always in 18 of 18 readings, up to 25ms, with appendfsync always"},
		{"an old event", func(f *figures, _ *Input) {
			f.server.Latency = []record.LatencyEvent{{Name: "aof-fsync-always", LatestMillis: 25}}
		}, None, ""},
		{"an event of something else", func(f *figures, _ *Input) {
			f.server.Latency = []record.LatencyEvent{{Name: "command", Unix: 1, LatestMillis: 25}}
		}, None, ""},
		{
			"evictions", func(f *figures, _ *Input) {
				f.server.EvictedKeys, f.server.MaxMemory, f.server.MaxMemoryPolicy = 500, 10<<20, "allkeys-lru"
			}, Memory,
			"keys/s, at 0.0 MiB of maxmemory 10.0 MiB, policy allkeys-lru",
		},
		{"writes refused", func(f *figures, _ *Input) { f.server.OOMErrors = 7 }, Memory, "refused 126 commands"},
		{
			"writes refused, by the client's count",
			func(f *figures, _ *Input) { f.oom = 2 },
			Memory,
			"requests were refused with OOM",
		},
		{"connections rejected", func(f *figures, _ *Input) {
			f.server.RejectedConnections, f.server.MaxClients = 3,
				51
		}, Clients, "rejected 54 connections; up to 51 clients were connected, maxclients is 51"},
		{"clients blocked", func(f *figures, _ *Input) { f.server.BlockedClients = 4 }, Clients, "up to 4 of them"},
		{"a backend", func(_ *figures, in *Input) { in.Backend = "MySQL" }, Backend, "waits for MySQL"},
		{"a backend that takes most of the time", func(f *figures, in *Input) {
			in.Backend, in.Times, f.tallies = "MySQL", &Times{Redis: 0, Backend: 1}, []uint64{20, 80}
		}, Backend, "waits for MySQL, in which operations spend 80% of their time"},
		{"a backend that is hardly used", func(f *figures, in *Input) {
			in.Backend, in.Times, f.tallies = "MySQL", &Times{Redis: 0, Backend: 1}, []uint64{99, 1}
		}, None, "operations spent 1% of their time in MySQL"},
		{"nothing known of the load", func(f *figures, _ *Input) { f.agent = record.AgentUse{} }, None, "Redis' main thread"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, in := idle(), Input{MeasuredFrom: time.Second}
			c.change(&f, &in)
			in.Series = f.run(t, 20*time.Second)
			if got := Find(in); got.Component != c.want || !strings.Contains(got.Evidence, c.evidence) {
				t.Errorf("%s: %s\nwant %s: ... %s ...", got.Component, got.Evidence, c.want, c.evidence)
			}
		})
	}
}

// Only what was observed is said to have reached no limit, and of a Redis that was not observed it is said why.
func TestFindWithoutReadingsOfRedis(t *testing.T) {
	t.Parallel()
	noInfo := []record.Unobserved{{Address: "redis:6379", Reason: "INFO: NOPERM this user has no permissions"}}
	for _, c := range []struct {
		name     string
		change   func(*figures, *Input)
		want     Component
		evidence string
	}{
		{
			"no permission", func(f *figures, _ *Input) { f.unobserved = noInfo }, None,
			"nothing that was observed was at its limit: the busiest load pod used 30% of its CPU, a PING takes at least " +
				"0.10ms, 10% of the median latency of 1.00ms; " +
				"Redis was not observed: INFO: NOPERM this user has no permissions",
		},
		{
			"disabled",
			func(_ *figures, in *Input) { in.NotAsked = "observe.redisInfo is 0s" },
			None,
			"10% of the median latency of 1.00ms; Redis was not observed: observe.redisInfo is 0s",
		},
		{
			"no reason is known", func(f *figures, _ *Input) {
				f.agent.CPULimit, f.agent.BusyThreads, f.agent.IdleRoundTrip, f.agent.RoundTrip = 0, 0, 0, 0
			}, None,
			"there are no readings of the load generator in the steady part; Redis was not observed: there are no readings of " +
				"it in the steady part",
		},
		{
			"one of two", func(f *figures, _ *Input) {
				f.unobserved, f.server = noInfo, record.Server{Address: "redis:6380", RunID: "r", CPUSeconds: 0.35}
			}, None,
			"nothing that was observed was at its limit: the busiest load pod used 30% of its CPU, a PING takes at least " +
				"0.10ms, 10% of the median latency of 1.00ms, " +
				"Redis' main thread was 35% busy; not all servers were observed: redis:6379: INFO: NOPERM this user has no permissions",
		},
		{
			"a database", func(f *figures, in *Input) { f.unobserved, in.Backend = noInfo, "PostgreSQL" }, Backend,
			"the workload waits for PostgreSQL: the median latency is 1.00ms, and the load is not at a limit; Redis was not " +
				"observed: INFO: NOPERM this user has no permissions",
		},
		{
			"a database, and one of two",
			func(f *figures, in *Input) {
				f.unobserved = noInfo
				f.server = record.Server{Address: "redis:6380", RunID: "r", CPUSeconds: 0.35}
				in.Backend = "PostgreSQL"
			},
			Backend,
			"and neither the load nor an observed server is at a limit; not all servers were observed: redis:6379: INFO: NOPERM",
		},
		{
			"a database alone", func(_ *figures, in *Input) { in.Redis, in.Backend = Apart, "PostgreSQL" }, Backend,
			"the workload waits for PostgreSQL: the median latency is 1.00ms, and the load is not at a limit",
		},
		{
			"a database, and nothing known of the load", func(f *figures, in *Input) {
				in.Redis, in.Backend, f.agent = Apart, "PostgreSQL", record.AgentUse{Pod: -1}
			}, Backend,
			"the workload waits for PostgreSQL: the median latency is 1.00ms, and there are no readings of the load generator",
		},
		{
			"far away, before the load",
			func(f *figures, _ *Input) {
				f.unobserved, f.response, f.agent.RoundTrip, f.agent.IdleRoundTrip = noInfo, 5200*time.Microsecond, 0, 5_000_000
			},
			Network,
			"the round trip of a PING alone takes 5.00ms, 96% of the median latency of 5.20ms; Redis was not observed: INFO: " +
				"NOPERM this user has no permissions",
		},
		{
			"a PING under load that may have waited for Redis",
			func(f *figures, _ *Input) { f.unobserved, f.agent.RoundTrip = noInfo, 900_000 },
			None,
			"a PING takes at least 0.10ms, 10% of the median latency",
		},
		{
			"the same, and none before", func(f *figures, _ *Input) {
				f.unobserved, f.agent.RoundTrip, f.agent.IdleRoundTrip = noInfo, 900_000, 0
			}, None,
			"nothing that was observed was at its limit: the busiest load pod used 30% of its CPU; Redis was not observed",
		},
	} {
		f, in := idle(), Input{MeasuredFrom: time.Second}
		f.server, f.agent.IdleRoundTrip = record.Server{}, 100_000
		c.change(&f, &in)
		in.Series = f.run(t, 20*time.Second)
		if got := Find(in); got.Component != c.want || !strings.Contains(got.Evidence, c.evidence) {
			t.Errorf("%s: %s: %s\nwant %s: ... %s ...", c.name, got.Component, got.Evidence, c.want, c.evidence)
		}
	}
}

// If several components are at their limits, the first one in the order is reported.
func TestFindReportsTheFirstComponentInOrder(t *testing.T) {
	f := idle()
	f.agent.CPUSeconds, f.server.CPUMainThreadSeconds, f.server.CPUSeconds = 0.95, 0.95, 0.95
	f.server.AOFDelayedFsync, f.server.EvictedKeys, f.server.RejectedConnections = 1, 100, 1
	in := Input{MeasuredFrom: time.Second, ServerCPULimit: 1, Backend: "MySQL"}
	for _, next := range []struct {
		want Component
		cure func()
	}{
		{LoadGenerator, func() { f.agent.CPUSeconds = 0.1 }},
		{CPULimit, func() { in.ServerCPULimit = 0 }},
		{RedisMainThread, func() { f.server.CPUMainThreadSeconds = 0.5 }},
		{Disk, func() { f.server.AOFDelayedFsync = 0; f.response, f.agent.RoundTrip = 2*time.Millisecond, 1_900_000 }},
		{Network, func() { f.agent.RoundTrip = 0 }},
		{Memory, func() { f.server.EvictedKeys = 0 }},
		{Clients, func() { f.server.RejectedConnections = 0 }},
		{Backend, func() { in.Backend = "" }},
		{None, func() {}},
	} {
		in.Series = f.run(t, 5*time.Second)
		if got := Find(in); got.Component != next.want {
			t.Errorf("%s: %s, want %s", got.Component, got.Evidence, next.want)
		}
		next.cure()
	}
}

// The warm-up and the windows of faults do not count.
func TestFindIgnoresWarmUpAndFaults(t *testing.T) {
	calm := idle()
	s := merged.New("run", time.Unix(0, 0), step, []string{"get"}, 1)
	for i := range int64(300) {
		iv := calm.interval(i, 0)
		if len(iv.Servers) > 0 { // rejected from 10 s to 15 s
			iv.Servers[0].RejectedConnections = min(max(i-100, 0), 50)
		}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	for _, c := range []struct {
		name string
		in   Input
		want Component
	}{
		{"all of it", Input{}, Clients},
		{"a fault", Input{Without: []summary.Window{{From: 9 * time.Second, To: 17 * time.Second}}}, None},
		{
			"two faults, one within the other",
			Input{
				Without: []summary.Window{
					{From: 11 * time.Second, To: 12 * time.Second},
					{From: 9 * time.Second, To: 17 * time.Second},
				},
			},
			None,
		},
		{"a fault elsewhere", Input{Without: []summary.Window{{From: 20 * time.Second, To: 25 * time.Second}}}, Clients},
		{"warm-up", Input{MeasuredFrom: 16 * time.Second}, None},
		{"everything is fault", Input{Without: []summary.Window{{To: time.Hour}}}, None},
	} {
		c.in.Series = s
		if got := Find(c.in); got.Component != c.want {
			t.Errorf("%s: %s: %s, want %s", c.name, got.Component, got.Evidence, c.want)
		}
	}
	if got := Find(Input{Series: s, Without: []summary.Window{{To: time.Hour}}}); !strings.HasPrefix(got.Evidence,
		"there are no readings") {
		t.Errorf("evidence without a steady part: %s, want that there are no readings", got.Evidence)
	}
}

// A load pod that did not run for a tenth of the time limited the load, unless Redis or the application was at a limit
// when it did.
func TestLoadPodThatDoesNotRun(t *testing.T) {
	near := idle()
	near.agent.RoundTrip = int64(time.Millisecond)
	busy := near
	busy.server.CPUMainThreadSeconds, busy.server.CPUSeconds = 0.95, 0.97
	for _, tt := range []struct {
		name  string
		run   figures
		stall time.Duration
		api   float64 // cores that it used, of one
		want  Component
	}{
		{"short", near, 900 * time.Millisecond, 0.5, Network},
		{"long", near, 1100 * time.Millisecond, 0.5, LoadGenerator},
		{"a busy Redis", busy, 1100 * time.Millisecond, 0.5, RedisMainThread},
		{"a busy application", near, 1100 * time.Millisecond, 0.95, Application},
	} {
		s := merged.New("run", time.Unix(0, 0), step, []string{"get"}, 1)
		for i := range int64(100) {
			iv := tt.run.interval(i, 0)
			if i == 50 {
				iv.Stalls = []record.Stall{{From: 50 * int64(step), To: 50*int64(step) + int64(tt.stall)}}
			}
			if err := s.Add(0, iv); err != nil {
				t.Fatal(err)
			}
		}
		s.Finish(0)
		s.AddPodUses([]record.PodUse{
			{
				At:       int64(10 * time.Second),
				Window:   int64(10 * time.Second),
				Name:     "api",
				CPU:      tt.api,
				MaxCPU:   tt.api,
				CPULimit: 1,
			},
		})
		found := Find(Input{Series: s, Backend: "the API"})
		if found.Component != tt.want || found.Stalled != (tt.want == LoadGenerator) {
			t.Errorf("%s: %+v, want %s", tt.name, found, tt.want)
		}
		if found.Stalled && found.Evidence != "load pod 0 did not run for 1.10s, 11% of the time, at most 1.10s at once" {
			t.Errorf("%s: %s", tt.name, found.Evidence)
		}
	}
}
