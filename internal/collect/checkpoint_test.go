package collect

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/agenttest"
)

// kept remembers the last checkpoint.
type kept struct{ data []byte }

func (k *kept) Load(context.Context) ([]byte, error)      { return k.data, nil }
func (k *kept) Save(_ context.Context, data []byte) error { k.data = data; return nil }

// openAlone opens a session that pulls from no agent; deliver adds intervals.
func openAlone(t testing.TB, store Store, pods, limit int) *Session {
	t.Helper()
	credentials, err := agent.NewCredentials()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(Config{
		Run:         "run",
		Step:        100 * time.Millisecond,
		Ops:         []string{"a", "b"},
		Pods:        pods,
		Credentials: credentials,
		Store:       store,
		Checkpoints: Checkpoints{Every: 24 * time.Hour, Limit: limit},
		Logger:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// deliver merges the intervals [from, to) of a pod.
func deliver(t testing.TB, s *Session, pod int, from, to int64) {
	t.Helper()
	var frames []byte
	for i := from; i < to; i++ {
		iv := agenttest.Interval(pod, i, 2, s.cfg.Step)
		data := record.AppendInterval(nil, &iv)
		frames = append(binary.AppendUvarint(frames, uint64(len(data))), data...)
	}
	if _, err := s.merge(s.pods[pod], batch{state: agent.Running, lastSeq: uint64(to), frames: frames}); err != nil {
		t.Fatal(err)
	}
}

// TestCompactCheckpoints: checkpoints that are coarser than the record contain every request, gap and pod's position,
// as the record itself does, whatever happened since; and a session that resumes one continues from it.
func TestCompactCheckpoints(t *testing.T) {
	const limit = 24 << 10
	store := &kept{}
	s := openAlone(t, store, 3, limit)
	start := time.Now().Add(-time.Hour) // so that no interval is in the future
	if err := s.Resume(t.Context(), start); err != nil {
		t.Fatal(err)
	}
	for round := range int64(40) {
		for pod := range 3 {
			if pod == 2 && round >= 20 {
				continue // lost half way
			}
			if pod == 1 && round == 10 {
				deliver(t, s, pod, round*20+5, round*20+20) // with missing intervals
				continue
			}
			deliver(t, s, pod, round*20, round*20+20)
		}
		if round == 20 {
			s.Lose(2)
		}
		if err := s.save(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(store.data) > limit {
			t.Fatalf("a checkpoint of %d bytes, allowed are %d", len(store.data), limit)
		}
		stored, err := merged.Decode(store.data)
		if err != nil {
			t.Fatal(err)
		}
		sameSums(t, s.record.series, stored)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	if c := s.record.compact; c == nil ||
		c.Step == s.record.series.Step && c.LatencyStep == s.record.series.LatencyStep {
		t.Fatal("the record always fitted: the test has no effect")
	}
	if s.record.series.Step != s.cfg.Step || s.record.series.LatencyStep != s.cfg.Step {
		t.Errorf("the record itself was coarsened to %v, %v", s.record.series.Step, s.record.series.LatencyStep)
	}

	next := openAlone(t, store, 3, limit)
	if err := next.Resume(t.Context(), start); err != nil {
		t.Fatal(err)
	}
	for _, session := range []*Session{s, next} {
		deliver(t, session, 0, 800, 820)
	}
	sameSums(t, s.record.series, next.record.series)
}

// sameSums compares the sums that coarsening must not change.
func sameSums(t *testing.T, want, got *merged.Series) {
	t.Helper()
	type sums struct {
		Counts  []record.Counts
		Latency []histogram.Buckets
		Gaps    []record.Gap
		Next    []int64
		Lost    int
	}
	of := func(s *merged.Series) sums {
		all := sums{
			Counts:  make([]record.Counts, len(s.Ops)),
			Latency: make([]histogram.Buckets, len(s.Ops)),
			Gaps:    s.Gaps(),
			Lost:    s.Lost(),
		}
		for i := range s.Len() {
			for k, op := range s.At(i).Ops {
				all.Counts[k].OK += op.OK
				all.Counts[k].Fail += op.Fail
				all.Counts[k].BytesIn += op.BytesIn
				all.Latency[k] = histogram.Merge(all.Latency[k], op.Latency)
			}
		}
		for pod := range s.Pods {
			all.Next = append(all.Next, s.Next(pod))
		}
		return all
	}
	if w, g := of(want), of(got); !reflect.DeepEqual(w, g) { // much faster than cmp.Diff
		t.Errorf("(-record +checkpoint)\n%s", cmp.Diff(w, g))
	}
}

// BenchmarkCheckpoint adds ten seconds of one pod's record and stores a checkpoint, in runs of different age.
func BenchmarkCheckpoint(b *testing.B) {
	for _, age := range []time.Duration{time.Minute, 10 * time.Minute, time.Hour} {
		b.Run(fmt.Sprint("after ", age), func(b *testing.B) {
			store := &kept{}
			s := openAlone(b, store, 1, 0)
			at := int64(0)
			ten := func() {
				deliver(b, s, 0, at, at+100)
				at += 100
			}
			for at < int64(age/s.cfg.Step) {
				ten()
				if at%3000 == 0 { // until the checkpoint is compact
					if err := s.save(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			}
			for b.Loop() {
				b.StopTimer()
				ten()
				b.StartTimer()
				if err := s.save(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(store.data))/1024, "KiB")
		})
	}
}
