package collect

import (
	"context"
	"encoding/binary"
	"log/slog"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/agenttest"
)

type nowhere struct{}

func (nowhere) Load(context.Context) ([]byte, error) { return nil, nil }
func (nowhere) Save(context.Context, []byte) error   { return nil }

// BenchmarkMerge decodes and merges answers of five intervals (what a pod records in 500 ms) with three operations,
// from 100 pods in turn.
func BenchmarkMerge(b *testing.B) {
	const pods, perAnswer, step = 100, 5, 100 * time.Millisecond
	credentials, err := agent.NewCredentials()
	if err != nil {
		b.Fatal(err)
	}
	s, err := Open(Config{
		Run:         "run",
		Step:        step,
		Ops:         []string{"a", "b", "c"},
		Pods:        pods,
		Credentials: credentials,
		Store:       nowhere{},
		Checkpoints: Checkpoints{Every: time.Hour},
		Logger:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	s.start.local = -int64(24 * time.Hour) // no interval is in the future
	answer := func(pod, round int) batch {
		var frames []byte
		for i := range int64(perAnswer) {
			iv := agenttest.Interval(pod, int64(round)*perAnswer+i, 3, step)
			data := record.AppendInterval(nil, &iv)
			frames = append(binary.AppendUvarint(frames, uint64(len(data))), data...)
		}
		return batch{state: agent.Running, lastSeq: uint64(round+1) * perAnswer, frames: frames}
	}
	intervals := 0
	for round := 0; b.Loop(); round++ {
		b.StopTimer()
		answers := make([]batch, pods)
		for pod := range answers {
			answers[pod] = answer(pod, round)
		}
		b.StartTimer()
		for pod, a := range answers {
			if _, err := s.merge(s.pods[pod], a); err != nil {
				b.Fatal(err)
			}
		}
		intervals += pods * perAnswer
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(intervals), "ns/interval")
}
