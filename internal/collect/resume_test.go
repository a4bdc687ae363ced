package collect_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/agenttest"
)

// TestOperatorRestartsAtAnyPoint kills the session again and again, at random points from before the start to after the
// end, and compares what is collected with an uninterrupted run.
func TestOperatorRestartsAtAnyPoint(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { restartAtRandom(t, seed) })
		})
	}
}

func restartAtRandom(t *testing.T, seed uint64) {
	draw := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t, 3, 200, nil)
	w.config.Checkpoints.Every = 4 * time.Millisecond
	mute := rand.New(rand.NewPCG(seed, 1))
	w.store.mute = func() bool { return mute.IntN(3) == 0 }
	s := w.open()
	w.until(s, "ready", allReady)
	at := time.Now().Add(1500 * time.Millisecond)
	stored := at.Round(0) // as in a status: without a monotonic reading
	if draw.IntN(2) == 0 {
		s.Close() // between the decision and the start
		s = w.open()
		if err := s.Resume(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Start(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	restarts := 0
	for !s.Status().Finished || restarts < 12 {
		time.Sleep(time.Duration(draw.Int64N(int64(150 * time.Millisecond))))
		s.Close()
		s = w.open()
		if err := s.Resume(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		if time.Until(at) > time.Second {
			if err := s.Start(t.Context(), stored); err != nil {
				t.Fatal(err)
			}
		}
		if restarts++; restarts > 500 {
			t.Fatalf("no end: %+v", s.Status())
		}
		if restarts > 40 {
			time.Sleep(100 * time.Millisecond)
		}
	}
	st := w.until(s, "finished with a known start", func(st collect.Status) bool {
		return st.Finished && st.AllStarted &&
			st.ClockShiftUncertainty > 0
	})
	w.expect(s, 200, 200, 200)
	if st.ClockShift != 0 {
		t.Errorf("clock shift %v ± %v", st.ClockShift, st.ClockShiftUncertainty)
	}
	for tries := 0; s.Release(t.Context()) != nil; tries++ {
		if tries > 20 {
			t.Fatal("cannot be released")
		}
	}
	s.Close()
	// After the release the pods are deleted; the checkpoint alone contains the outcome.
	s = w.open()
	if err := s.Resume(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	w.until(s, "finished", finished)
	w.expect(s, 200, 200, 200)
	s.Close()
	t.Logf("seed %d: %d restarts, %d checkpoints", seed, restarts, w.store.saves)
}

func TestNothingIsAcknowledgedBeforeItIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 60, nil)
		w.store.fail(errDown)
		s := w.open()
		at := w.start(s)
		st := w.until(s, "finished, with a store that fails", func(st collect.Status) bool {
			return st.Finished &&
				s.StoreError() != nil
		})
		if st.Pods[0].Acked != 0 || !st.Saved.IsZero() || st.Pods[0].Pulled != 60 {
			t.Errorf("%+v", st)
		}
		if err := s.Release(t.Context()); !errors.Is(err, errDown) {
			t.Errorf("release: %v", err)
		}
		s.Close()
		// Nothing was stored, so that the pod must still have everything.
		w.store.fail(nil)
		s = w.open()
		if err := s.Resume(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		w.until(s, "finished", finished)
		w.expect(s, 60)
		st = w.until(s, "saved", func(st collect.Status) bool { return st.Pods[0].Acked == 60 })
		if s.StoreError() != nil || st.Saved.IsZero() {
			t.Errorf("%+v", st)
		}
	})
}

func TestSessionContinuesFromCoarseCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 400, nil)
		w.config.Checkpoints.Limit = 25 << 10
		s := w.open()
		at := w.start(s)
		w.until(s, "well under way", func(st collect.Status) bool { return st.Pods[0].Acked > 150 && st.Pods[1].Acked > 150 })
		s.Close()
		s = w.open()
		if err := s.Resume(t.Context(), at.Round(0)); err != nil {
			t.Fatal(err)
		}
		w.until(s, "finished", finished)
		s.Read(func(got *merged.Series) {
			if got.Step <= step && got.LatencyStep <= step {
				t.Fatalf("was not coarsened: %v, %v", got.Step, got.LatencyStep)
			}
			var have, want [2]record.Counts
			var latency, wantLatency [2]histogram.Distribution
			for i := range got.Len() {
				for k := range ops {
					addCounts(&have[k], got.At(i).Ops[k].Counts)
					latency[k].Add(got.At(i).Ops[k].Latency)
				}
			}
			for pod := range 2 {
				for i := range int64(400) {
					iv := agenttest.Interval(pod, i, len(ops), step)
					for k := range ops {
						addCounts(&want[k], iv.Ops[k].Counts)
						wantLatency[k].Add(iv.Ops[k].Latency)
					}
				}
			}
			if have != want {
				t.Errorf("totals %+v, want %+v", have, want)
			}
			for k := range ops {
				for _, q := range []float64{0.5, 0.99, 1} {
					if latency[k].Count() != wantLatency[k].Count() || latency[k].Quantile(q) != wantLatency[k].Quantile(q) {
						t.Errorf("latency of %s at %v: %v of %d, want %v of %d", ops[k], q, latency[k].Quantile(q), latency[k].Count(),
							wantLatency[k].Quantile(q), wantLatency[k].Count())
					}
				}
			}
		})
	})
}

func addCounts(to *record.Counts, c record.Counts) {
	to.Due += c.Due
	to.Sent += c.Sent
	to.OK += c.OK
	to.Fail += c.Fail
	to.Unknown += c.Unknown
	to.BytesIn, to.BytesOut = to.BytesIn+c.BytesIn, to.BytesOut+c.BytesOut
	for i := range c.Errors {
		to.Errors[i] += c.Errors[i]
	}
}

func TestMemoryLimitCoarsens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 100, nil)
		w.config.Memory = &collect.Memory{Limit: 100 << 10}
		s := w.open()
		w.start(s)
		w.until(s, "finished", finished)
		if err := s.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Read(func(series *merged.Series) {
			if series.Memory() > 100<<10 || len(series.Notes) == 0 || series.Next(0) != 100 {
				t.Errorf("takes %d bytes, notes %q, next %d", series.Memory(), series.Notes, series.Next(0))
			}
		})
	})
}

func TestResumeDetectsAShiftedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 100, nil)
		s := w.open()
		at := w.start(s)
		s.Close()
		s = w.open()
		// the stored instant on a wall clock that is 3 s ahead
		if err := s.Resume(t.Context(), at.Round(0).Add(-3*time.Second)); err != nil {
			t.Fatal(err)
		}
		st := w.until(s, "started", func(st collect.Status) bool { return st.AllStarted && st.ClockShiftUncertainty > 0 })
		if st.ClockShift != 3*time.Second || !st.Start.Equal(at) {
			t.Errorf("clock shift %v ± %v, want 3 s; start off by %v", st.ClockShift, st.ClockShiftUncertainty, st.Start.Sub(at))
		}
		w.until(s, "finished", finished)
		w.expect(s, 100)
	})
}

func TestResumeAfterThePodRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 60, nil)
		s := w.open()
		at := w.start(s)
		w.until(s, "stored some", func(st collect.Status) bool { return st.Pods[0].Acked > 5 })
		s.Close()
		w.agents[0].Crash()
		w.serve(0, agent.Config{})
		s = w.open()
		if err := s.Resume(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		w.until(s, "restarted", func(st collect.Status) bool { return st.Pods[0].Problem == collect.Restarted })
		s.Lose(0)
		w.until(s, "finished", finished)
	})
}

// A pod that is lost in the record stays lost after a restart of the operator, whatever its state.
func TestLostPodStaysLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 60, nil)
		s := w.open()
		at := w.start(s)
		w.until(s, "pulled some", func(st collect.Status) bool { return st.Pods[1].Pulled >= 10 })
		s.Lose(1)
		w.until(s, "finished and stored", func(st collect.Status) bool { return st.Finished && st.Pods[0].Acked == 60 })
		s.Close()

		s = w.open()
		if err := s.Resume(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		if st := s.Status(); st.Gone != 1 || !st.Pods[1].Gone || st.Pods[0].Gone {
			t.Errorf("after the restart: %+v", st)
		}
		w.until(s, "finished", finished)
	})
}

func TestResumeRefusesOtherCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other, err := merged.New("another run", time.Now(), step, ops, 1).Encode(0)
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, 1, 10, nil)
		for name, data := range map[string][]byte{"another run": other, "damaged": []byte("\x01nonsense")} {
			w.store.data = data
			s := w.open()
			if err := s.Resume(t.Context(), time.Now()); !errors.Is(err, collect.ErrCheckpoint) {
				t.Errorf("%s: %v", name, err)
			}
		}
		w.store.fail(errDown)
		if err := w.open().Resume(t.Context(), time.Now()); !errors.Is(err, errDown) {
			t.Errorf("store unavailable: %v", err)
		}
	})
}
