package collect

import (
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/codec"
	"github.com/redquake/redquake/internal/testing/agenttest"
)

// frames are intervals as a pod sends them.
func frames(intervals ...record.Interval) []byte {
	var out []byte
	for i := range intervals {
		body := record.AppendInterval(nil, &intervals[i])
		out = append(binary.AppendUvarint(out, uint64(len(body))), body...)
	}
	return out
}

// FuzzFrames checks that no answer of a load pod makes decoding panic or allocate out of proportion, and that what is
// accepted fits a status.
func FuzzFrames(f *testing.F) {
	honest := func(index int64) record.Interval { return agenttest.Interval(0, index, 2, 50*time.Millisecond) }
	f.Add(frames(honest(0), honest(1), honest(2)))
	f.Add(frames(honest(0))[:40])
	f.Add(append(frames(honest(0)), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f))
	f.Add(binary.AppendUvarint(nil, 1<<62))
	f.Add(frames(record.Interval{Index: -1}))
	hostile := honest(3)
	hostile.Ops[0].OK, hostile.FirstOK = math.MaxUint64, math.MinInt64
	f.Add(frames(hostile))
	reading := honest(4)
	reading.Servers = []record.Server{
		{
			Address:    "a:1\x1b",
			Version:    "\xff\x00",
			UsedMemory: -5,
			CPUSeconds: math.NaN(),
			Shard:      math.MaxInt64,
			SlowLog:    record.SlowLog{Total: -7, Commands: []record.SlowCommand{{Command: "\r\n", Count: -1}}},
			Latency:    []record.LatencyEvent{{Name: "\x00"}},
		},
	}
	reading.Unobserved = []record.Unobserved{{Address: "\x07", Reason: "\xc3"}}
	reading.Agents = []record.AgentUse{{CPUSeconds: math.Inf(-1), Memory: -1}}
	reading.Lost, reading.LedgerChecks = []uint64{3}, []record.LedgerCheck{{At: 5, Failure: "\x1b["}}
	f.Add(frames(reading))
	s := &Session{cfg: Config{Ops: []string{"set", "get"}}}
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		accepted, err := decodeAll(s, b)
		runtime.ReadMemStats(&after)
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(256*len(b)+1<<18); got > limit {
			t.Fatalf("%d bytes made it allocate %d", len(b), got)
		}
		if err != nil && !errors.Is(err, codec.ErrCorrupt) && !errors.Is(err, errFrame) {
			t.Error(err)
		}
		for i := range accepted {
			checkAccepted(t, &accepted[i])
		}
	})
}

// decodeAll decodes an answer as merge does.
func decodeAll(s *Session, b []byte) (all []record.Interval, err error) {
	for err == nil && len(b) > 0 {
		left := len(b)
		var some []record.Interval
		some, b, err = s.decode(nil, b, 1<<40)
		if all = append(all, some...); len(b) == left {
			break
		}
	}
	return all, err
}

func checkAccepted(t *testing.T, iv *record.Interval) {
	t.Helper()
	if err := iv.Check(); err != nil {
		t.Error(err)
	}
	var texts []string
	for _, s := range iv.Servers {
		texts = append(texts, s.Address, s.RunID, s.Name, s.Version, s.Mode, s.Role, s.MaxMemoryPolicy, s.AOFFsync)
		for _, c := range s.SlowLog.Commands {
			texts = append(texts, c.Command)
			if c.Count < 1 || c.WorstMicros < 0 {
				t.Errorf("slow command %+v", c)
			}
		}
		for _, e := range s.Latency {
			texts = append(texts, e.Name)
		}
		if !(s.CPUSeconds >= 0) || s.UsedMemory < 0 || s.Shard < 0 || s.Shard > record.MaxShards || s.SlowLog.Total < -1 {
			t.Errorf("reading %+v", s)
		}
	}
	for _, u := range iv.Unobserved {
		texts = append(texts, u.Address, u.Reason)
	}
	for _, c := range iv.LedgerChecks {
		texts = append(texts, c.Failure)
	}
	for _, a := range iv.Agents {
		if !(a.CPUSeconds >= 0) || a.Memory < 0 || a.RoundTrip < 0 {
			t.Errorf("reading %+v", a)
		}
	}
	for _, text := range texts {
		for _, r := range text {
			if r == utf8.RuneError || !unicode.IsPrint(r) {
				t.Errorf("text %q", text)
				break
			}
		}
		if len(text) > maxMessage+3 {
			t.Errorf("a text of %d bytes", len(text))
		}
	}
}
