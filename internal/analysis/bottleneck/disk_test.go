package bottleneck

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// A server whose main thread is in fsyncs, by its own report or by what clients see of it, is limited by its disk. A
// generator at its limit beside it is named first only if the disk had time left, and said in any case.
func TestWhoWaitsForItsDisk(t *testing.T) {
	waits := idle()
	waits.agent.IdleRoundTrip, waits.agent.RoundTrip, waits.response = 80_000, 3_800_000, 34*time.Millisecond
	waits.rate, waits.connections = 110, 4
	waits.server.CPUSeconds, waits.server.CPUMainThreadSeconds = 0.03, 0.02
	waits.server.AOFEnabled, waits.server.AOFFsync, waits.server.AOFSize, waits.server.AOFFlushMicros = true, "always",
		10_000, 990_000
	change := func(f figures, change func(*figures)) figures {
		change(&f)
		return f
	}
	unreported := change(waits, func(f *figures) { f.server.AOFFlushMicros = 0 })
	events := func(name string, millis int64) func(*figures) {
		return func(f *figures) {
			f.server.Latency = []record.LatencyEvent{{Name: name, Unix: 1, LatestMillis: millis}}
		}
	}
	saturate := func(f *figures) { f.agent.CPUSeconds = 0.95 }
	for _, tt := range []struct {
		name     string
		run      figures
		want     Component
		evidence string
	}{
		{"reported", waits, Disk, "Redis waited for its disk for 92% of the time: its main thread was in writes and fsyncs"},
		{
			"reported, and a generator at its limit", change(waits, saturate), Disk,
			", with appendfsync always; load pod 0 used 0.95 cores of CPU",
		},
		{
			"of a disk that has time left, and a generator at its limit",
			change(waits, func(f *figures) { saturate(f); f.server.AOFFlushMicros = 700_000 }),
			LoadGenerator,
			"load pod 0 used 0.95 cores",
		},
		{"for less than half of the time", change(waits, func(f *figures) { f.server.AOFFlushMicros = 450_000 }), None, ""},
		{
			"a main thread that computes meanwhile",
			change(waits, func(f *figures) { f.server.CPUSeconds, f.server.CPUMainThreadSeconds = 0.95, 0.95 }),
			RedisMainThread,
			"",
		},
		{"not reported", unreported, Disk, "Redis waited for its disk or for a CPU: half of the requests took 34"},
		{
			"not reported, of an idle network as slow",
			change(unreported, func(f *figures) { f.agent.IdleRoundTrip = 3_700_000 }),
			None,
			"",
		},
		{
			"not reported, fsync every second",
			change(unreported, func(f *figures) { f.server.AOFFsync = "everysec" }),
			None,
			"",
		},
		{"not reported, and nothing is written", change(unreported, func(f *figures) { f.server.AOFSize = 0 }), None, ""},
		{"events of two milliseconds each second", change(idle(), events("aof-write-alone", 2)), None, ""},
		{
			"events of 150 ms each second", change(idle(), events("aof-write-alone", 150)), Disk,
			"latency event aof-write-alone in 19 of 19 readings, up to 150ms",
		},
		{
			"fsyncs before replies, of which one each second is known", change(idle(), events("aof-fsync-always", 20)), Disk,
			"latency event aof-fsync-always in 19 of 19 readings",
		},
		{"the same, of a version that reports that they are short", change(idle(), func(f *figures) {
			events("aof-fsync-always", 20)(f)
			f.server.AOFFlushMicros = 200_000
		}), None, ""},
		{
			"writes refused to others",
			change(idle(), func(f *figures) { f.server.MisconfErrors = 20 }),
			Disk,
			"commands with MISCONF: it could not write its data to its disk",
		},
	} {
		got := Find(Input{Series: tt.run.run(t, 20*time.Second), Stamped: true})
		if got.Component != tt.want || !strings.Contains(got.Evidence, tt.evidence) {
			t.Errorf("%s: %s: %s\nwant %s: %s", tt.name, got.Component, got.Evidence, tt.want, tt.evidence)
		}
	}
}
