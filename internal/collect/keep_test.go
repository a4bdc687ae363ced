package collect

import (
	"fmt"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/agenttest"
	"github.com/redquake/redquake/internal/testing/truth"
)

// TestTruthFaultAfterARestart: a record is coarsened for memory, a fault is injected, and the operator restarts. Around
// the fault the next operator has every interval as the pods recorded it, also those from before the injection.
func TestTruthFaultAfterARestart(t *testing.T) {
	t.Parallel()
	store := &kept{}
	s := openAlone(t, store, 2, 0)
	s.cfg.Memory = &Memory{Limit: 10 << 20}
	start := time.Now().Add(-time.Hour)
	if err := s.Resume(t.Context(), start); err != nil {
		t.Fatal(err)
	}
	const t0 = 20 * time.Minute
	all := func(s *Session, from, to time.Duration) {
		for at := from; at < to; at += time.Minute {
			for pod := range 2 {
				deliver(t, s, pod, int64(at/s.cfg.Step), int64((at+time.Minute)/s.cfg.Step))
			}
			if err := s.save(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	all(s, 0, t0)
	s.Keep("fault", t0-2*time.Minute, 1<<62)
	all(s, t0, t0+time.Minute)
	s.Close()
	s = openAlone(t, store, 2, 0)
	if err := s.Resume(t.Context(), start); err != nil {
		t.Fatal(err)
	}
	all(s, t0+time.Minute, t0+10*time.Minute)
	s.Read(func(series *merged.Series) {
		from, to := t0-2*time.Minute, t0+10*time.Minute
		fine := series.Fine(from, to)
		truth.Report(t, "T4", "interval of the record around a fault, after a restart of the operator", s.cfg.Step.String(),
			fine.Step.String(), fine.Step == s.cfg.Step)
		if !series.Coarse() || fine.Complete() != int(to/s.cfg.Step) {
			t.Fatalf("coarse %v, %d intervals", series.Coarse(), fine.Complete())
		}
		wrong := 0
		for i := int(from / s.cfg.Step); i < int(to/s.cfg.Step); i++ {
			want := uint64(0)
			for pod := range 2 {
				want += agenttest.Interval(pod, int64(i), 2, s.cfg.Step).Ops[0].OK
			}
			if fine.At(i).Ops[0].OK != want {
				wrong++
			}
		}
		truth.Report(t, "T4", "intervals around it that differ from what the pods recorded", "0", fmt.Sprint(wrong),
			wrong == 0)
	})
}
