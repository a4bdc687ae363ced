package bottleneck

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

// What Redis itself gives a reason for is named before that the load generator did not run, which is said beside it;
// what held for less than a tenth of the time is an event.
func TestLimitsOfRedisComeBeforeTheGenerator(t *testing.T) {
	const intervals = 100
	refuse := func(class record.Class, share int64) func(int64, *record.Interval) {
		return func(i int64, iv *record.Interval) {
			if i%intervals < share {
				op := &iv.Ops[0]
				op.Fail, op.Errors[class] = op.OK, op.OK
				op.OK, op.Latency = 0, nil
			}
		}
	}
	grow := func(counter func(*record.Server) *int64, from int64) func(int64, *record.Interval) {
		return func(i int64, iv *record.Interval) {
			for k := range iv.Servers {
				*counter(&iv.Servers[k]) = max(0, i-from)
			}
		}
	}
	both := func(changes ...func(int64, *record.Interval)) func(int64, *record.Interval) {
		return func(i int64, iv *record.Interval) {
			for _, change := range changes {
				change(i, iv)
			}
		}
	}
	busy := func(_ int64, iv *record.Interval) {
		for k := range iv.Servers {
			iv.Servers[k].CPUMainThreadSeconds = 0.95 * time.Duration(iv.Servers[k].At).Seconds()
		}
	}
	for _, tt := range []struct {
		name     string
		change   func(int64, *record.Interval)
		stalled  bool
		want     Component
		evidence string
	}{
		{
			"nothing",
			func(int64, *record.Interval) {},
			true,
			LoadGenerator,
			"load pod 0 did not run for 2.60s, 26% of the time",
		},
		{
			"all refused with OOM, and a generator that stalls", refuse(record.ClassOOM, intervals), true, Memory,
			"10000 requests were refused with OOM; load pod 0 did not run for 2.60s, 26% of the time",
		},
		{
			"all refused with MISCONF, and a generator that stalls", refuse(record.ClassMisconf, intervals), true, Disk,
			"10000 requests were refused with MISCONF, in 100% of the time: Redis could not write its data to its disk; load pod 0 did not run",
		},
		{"OOM for an eighth of the time", refuse(record.ClassOOM, 12), false, Memory, "1200 requests were refused with OOM"},
		{"OOM for an instant", refuse(record.ClassOOM, 1), false, None, ""},
		{"MISCONF for an instant", refuse(record.ClassMisconf, 1), false, None, ""},
		{
			"clients evicted",
			grow(func(s *record.Server) *int64 { return &s.EvictedClients }, 0),
			true,
			Clients,
			"disconnected 90 clients, as all of them together exceeded maxmemory-clients; load pod 0 did not run",
		},
		{
			"output buffers",
			grow(func(s *record.Server) *int64 { return &s.BufferedClients }, 0),
			true,
			Clients,
			"as replies to them exceeded client-output-buffer-limit; load pod 0 did not run",
		},
		{
			"queries",
			grow(func(s *record.Server) *int64 { return &s.QueryingClients }, 0),
			true,
			Clients,
			"as their requests exceeded client-query-buffer-limit; load pod 0 did not run",
		},
		{
			"clients evicted that are the load's, of a busy Redis",
			both(refuse(record.ClassReset, 30), busy, grow(func(s *record.Server) *int64 { return &s.EvictedClients }, 0)),
			true,
			Clients,
			"as all of them together exceeded maxmemory-clients; load pod 0 did not run",
		},
		{
			"clients evicted that are others', of a busy Redis",
			both(busy, grow(func(s *record.Server) *int64 { return &s.EvictedClients }, 0)),
			false,
			RedisMainThread,
			"",
		},
		{
			"replicas beyond their output buffer limit",
			both(grow(func(s *record.Server) *int64 { return &s.BufferedClients }, 0),
				grow(func(s *record.Server) *int64 { return &s.FullSyncs }, 0)),
			false,
			None,
			"",
		},
		{
			"closed connections that nothing explains", refuse(record.ClassReset, 30), false, None,
			"3000 requests failed as their connections were closed, in 30% of the time, which no counter of Redis explains",
		},
		{
			"closed connections that nothing explains, and a generator that stalls", refuse(record.ClassReset, 30), true,
			LoadGenerator, "of the time, at most 260.0ms at once; 3000 requests failed as their connections",
		},
		{
			"connections rejected at an instant",
			grow(func(s *record.Server) *int64 { return &s.RejectedConnections }, intervals-15),
			false,
			None,
			"",
		},
		{
			"keys evicted at an instant",
			grow(func(s *record.Server) *int64 { return &s.EvictedKeys }, intervals-15),
			false,
			None,
			"",
		},
		{
			"an fsync delayed at an instant",
			grow(func(s *record.Server) *int64 { return &s.AOFDelayedFsync }, intervals-15),
			false,
			None,
			"",
		},
	} {
		s := merged.New("run", time.Unix(0, 0), step, []string{"get"}, 1)
		for i := range int64(intervals) {
			iv := idle().interval(i, 0)
			if tt.change(i, iv); tt.stalled && i%10 == 5 {
				iv.Stalls = []record.Stall{
					{From: i*int64(step) - int64(200*time.Millisecond), To: i*int64(step) + int64(60*time.Millisecond)},
				}
			}
			if err := s.Add(0, iv); err != nil {
				t.Fatal(err)
			}
		}
		s.Finish(0)
		got := Find(Input{Series: s})
		if got.Component != tt.want || !strings.Contains(got.Evidence, tt.evidence) ||
			got.Stalled != (tt.want == LoadGenerator) {
			t.Errorf("%s: %+v\nwant %s: %s", tt.name, got, tt.want, tt.evidence)
		}
	}
}

// A Redis that the kernel ends at its memory limit is limited by that if requests found no server for long, whatever a
// generator did.
func TestOutOfMemoryComesFirst(t *testing.T) {
	for _, tt := range []struct {
		share int64 // of 100 intervals in which requests are refused
		want  Component
	}{{0, LoadGenerator}, {5, LoadGenerator}, {40, Memory}} {
		f := idle()
		f.agent.CPUSeconds = 0.95
		s := merged.New("run", time.Unix(0, 0), step, []string{"get"}, 1)
		for i := range int64(100) {
			iv := f.interval(i, 0)
			if i < tt.share {
				op := &iv.Ops[0]
				op.Fail, op.Errors[record.ClassRefused], op.OK, op.Latency = op.OK, op.OK, 0, nil
			}
			if err := s.Add(0, iv); err != nil {
				t.Fatal(err)
			}
		}
		s.Finish(0)
		got := Find(Input{Series: s, OutOfMemory: "container redis ended"})
		if got.Component != tt.want ||
			tt.want == Memory && !strings.HasPrefix(got.Evidence, "container redis ended; load pod 0 used ") {
			t.Errorf("refused in %d%% of the time: %+v, want %s", tt.share, got, tt.want)
		}
	}
}

// A generator that waits for a CPU limits a closed loop, unless its users wait for replies, by the kernel's stamps:
// then Redis does, which may wait for a CPU itself.
func TestWhoWaitsForACPU(t *testing.T) {
	near := idle()
	near.rate, near.connections = 20_000, 4
	near.response = 34 * time.Microsecond // 4 users: 0.7 of them are in flight
	near.agent.IdleRoundTrip, near.agent.RoundTrip = 50_000, 60_000
	near.agent.CPUSeconds, near.agent.WaitedSeconds = 0.21, 0.75
	starved := near
	starved.rate, starved.connections, starved.response, starved.agent.RoundTrip = 40, 8, 195*time.Millisecond, 150_000_000
	starved.server.CPUSeconds, starved.server.CPUMainThreadSeconds = 0.03, 0.03
	far := starved // nothing tells Redis from the network
	far.agent.IdleRoundTrip = 150_000_000
	open := near
	open.service = 30 * time.Microsecond
	for _, tt := range []struct {
		name     string
		run      figures
		want     Component
		evidence string
	}{
		{
			"a closed loop", near, LoadGenerator,
			"load pod 0 waited for a CPU for 14.31s, beside 4.01s in which it ran: up to ",
		},
		{"an open loop", open, None, ""},
		{"a starved Redis", starved, CPULimit, "Redis waited for a CPU: half of the requests took 195"},
		{
			"a starved Redis, and a generator", starved, CPULimit,
			"while its main thread was 3% busy; load pod 0 waited for a CPU for",
		},
		{"far away", far, Network, "load pod 0 waited for a CPU for"},
	} {
		got := Find(Input{Series: tt.run.run(t, 20*time.Second), Stamped: true})
		if got.Component != tt.want || !strings.Contains(got.Evidence, tt.evidence) {
			t.Errorf("%s: %s: %s\nwant %s: %s", tt.name, got.Component, got.Evidence, tt.want, tt.evidence)
		}
	}
}
