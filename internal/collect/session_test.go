package collect_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/agenttest"
	"github.com/redquake/redquake/internal/testing/truth"
)

func TestCollectWholeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, 60, func(pod int, r *agenttest.Runner, _ *agent.Config) {
			r.Preparing = time.Duration(pod) * 30 * time.Millisecond
		})
		s := w.open()
		at := w.start(s)
		if err := s.Start(t.Context(), at.Round(0)); err != nil {
			t.Errorf("the same start again: %v", err)
		}
		if err := s.Start(t.Context(), at.Add(time.Second)); err == nil {
			t.Error("a second start was accepted")
		}
		st := w.until(s, "finished", finished)
		w.expect(s, 60, 60, 60)
		if st.Skew != 0 || st.SkewUncertainty != 0 || st.StartError != 0 {
			t.Errorf("skew %v ± %v, error of the start %v", st.Skew, st.SkewUncertainty, st.StartError)
		}
		if st.ClockShift != 0 || !st.Start.Equal(at) {
			t.Errorf("clock shift %v, start off by %v", st.ClockShift, st.Start.Sub(at))
		}
		for i, p := range st.Pods {
			if p.Name != fmt.Sprintf("pod-%d", i) || p.Pulled != 60 || p.Lost != 0 || p.Filled != 0 || !p.Complete ||
				p.Server == nil {
				t.Errorf("pod %d: %+v", i, p)
			}
			if want := time.Duration(i+1) * 1000 * time.Second; p.Offset != want || !p.StartAt.Equal(at) ||
				!p.StartedAt.Equal(at) {
				t.Errorf("pod %d: offset %v, want %v; start estimated as %v, begun at %v, want %v", i, p.Offset, want, p.StartAt,
					p.StartedAt, at)
			}
		}
		if err := s.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, a := range w.agents {
			<-a.Done
			if a.Err != nil {
				t.Errorf("agent %d: %v", i, a.Err)
			}
		}
		stored, err := merged.Decode(w.store.data)
		if err != nil {
			t.Fatal(err)
		}
		s.Read(func(got *merged.Series) { same(t, got, stored) })
		if !stored.Start.Equal(at) || stored.Run != "run" {
			t.Errorf("stored start %v, run %q", stored.Start, stored.Run)
		}
		if err := s.Release(t.Context()); err != nil {
			t.Errorf("release again: %v", err)
		}
	})
}

// TestClockReadingsAreWithinTheirUncertainty: with 1 ms for requests and 3 ms for answers, every reading of a pod's
// clock is off by 1 ms.
func TestClockReadingsAreWithinTheirUncertainty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// what is on its way arrives, or a goroutine would be left in the bubble
		t.Cleanup(func() { time.Sleep(time.Second) })
		w := newWorld(t, 2, 60, nil)
		w.config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := w.network.Dial(ctx, network, address)
			return farConn{c}, err
		}
		s := w.open()
		at := w.start(s)
		st := w.until(s, "finished", func(st collect.Status) bool { return st.Finished && st.Skew >= 0 })
		w.expect(s, 60, 60)
		const off, trip, drift = time.Millisecond, 4 * time.Millisecond, time.Microsecond
		for i, p := range st.Pods {
			if want := time.Duration(i+1)*1000*time.Second - off; p.Offset != want || p.Uncertainty < trip/2 {
				t.Errorf("pod %d: offset %v ± %v, want %v", i, p.Offset, p.Uncertainty, want)
			}
		}
		if st.Skew != 0 || st.SkewUncertainty < trip || st.SkewUncertainty > trip+drift || st.StartError != 0 {
			t.Errorf("skew %v ± %v, error of the start %v", st.Skew, st.SkewUncertainty, st.StartError)
		}
		if began := w.runners[0].StartedAt().Sub(at); began != -off {
			t.Errorf("pod 0 began %v after the instant, want %v", began, -off)
		}
	})
}

// farConn takes 1 ms to the peer and 3 ms back.
type farConn struct{ net.Conn }

func (c farConn) Write(b []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return c.Conn.Write(b)
}

func (c farConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil {
		time.Sleep(3 * time.Millisecond)
	}
	return n, err
}

func TestLateStartIncreasesTheSkew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 100, func(pod int, r *agenttest.Runner, _ *agent.Config) {
			r.Late = time.Duration(pod) * 200 * time.Millisecond
		})
		s := w.open()
		w.start(s)
		st := w.until(s, "begun", func(st collect.Status) bool { return st.Skew >= 0 })
		if st.Skew != 200*time.Millisecond || st.StartError != 200*time.Millisecond {
			t.Errorf("skew %v, error of the start %v, want 200 ms", st.Skew, st.StartError)
		}
	})
}

func TestStartReportsPodsThatDidNotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, 10, func(pod int, r *agenttest.Runner, _ *agent.Config) {
			switch pod {
			case 1:
				r.Preparing = time.Hour
			case 2:
				r.PrepareErr = &plan.Error{Reason: plan.PermissionDenied, Message: "redis:6379 refuses SET"}
			}
		})
		s := w.open()
		w.until(s, "pod 0 ready and pod 2 failed", func(st collect.Status) bool {
			return st.Ready == 1 && st.Failed == 1 && st.Pods[1].ClockSettled && st.Pods[2].ClockSettled
		})
		err := s.Start(t.Context(), time.Now().Add(time.Second))
		if err == nil || strings.Contains(err.Error(), "pod 0") || !strings.Contains(err.Error(), "pod 1: ") ||
			!strings.Contains(err.Error(), "PermissionDenied redis:6379 refuses SET") {
			t.Errorf("error: %v", err)
		}
		// The caller then continues with the running pods.
		s.Lose(1)
		st := w.until(s, "finished", finished)
		if st.Gone != 1 || st.Pods[2].Reason != "PermissionDenied" || !st.Pods[0].Complete {
			t.Errorf("%+v", st)
		}
		w.expect(s, 10, 0, 0)
	})
}

func TestNotStartedIsAProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 10, nil)
		s := w.open()
		w.until(s, "ready", allReady)
		if err := s.Start(t.Context(), time.Now().Add(-time.Second)); err == nil {
			t.Fatal("a start in the past was accepted")
		}
		st := w.until(s, "a problem", func(st collect.Status) bool { return st.Pods[0].Problem != "" })
		if st.Pods[0].Problem != collect.NotStarted || st.Finished {
			t.Errorf("%+v", st)
		}
	})
}

func TestPodAddressesAppearLateAndChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 20, nil)
		s, err := collect.Open(w.config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		s.SetPods([]collect.Pod{{Index: 0, Address: w.agents[0].Address}, {Index: 7, Address: "ignored:1"}})
		w.until(s, "pod 0 ready", func(st collect.Status) bool { return st.Ready == 1 })

		// The address of pod 1 is first that of another agent, then missing, then its own.
		s.SetPods([]collect.Pod{{Index: 1, Address: w.agents[0].Address}})
		w.until(s, "the wrong agent", func(st collect.Status) bool { return st.Pods[1].Problem == collect.WrongAgent })
		s.SetPods([]collect.Pod{{Index: 1, Address: "127.0.0.1:1"}})
		w.until(s, "unreachable", func(st collect.Status) bool { return !st.Pods[1].Reachable && st.Pods[1].Err != "" })
		s.SetPods(w.pods())
		w.until(s, "ready", allReady)

		// Before the start a pod may be replaced: another process with another clock.
		w.agents[0].Crash()
		w.serve(0, agent.Config{Epoch: time.Now().Add(-time.Hour)})
		s.SetPods(w.pods())
		w.until(s, "replaced", func(st collect.Status) bool { return st.AllReady && st.Pods[0].Offset > 3000*time.Second })
		w.start(s)
		w.until(s, "finished", finished)
		w.expect(s, 20, 20)
	})
}

func TestCrashedPodIsUnreachableUntilLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 80, nil)
		s := w.open()
		w.start(s)
		w.until(s, "pulled some", func(st collect.Status) bool { return st.Pods[1].Pulled >= 10 })
		crashed := time.Now()
		w.agents[1].Crash()
		st := w.until(s, "unreachable", func(st collect.Status) bool { return !st.Pods[1].Reachable })
		if since := st.Pods[1].UnreachableSince; since.Before(crashed) || since.Sub(crashed) > w.config.PullEvery ||
			st.Pods[1].Err == "" {
			t.Errorf("since %v, crashed %v: %+v", since, crashed, st.Pods[1])
		}
		w.until(s, "pod 0 complete", func(st collect.Status) bool { return st.Pods[0].Complete })
		if st := s.Status(); st.Finished {
			t.Error("finished without its second pod")
		}
		s.Lose(1)
		st = w.until(s, "finished", finished)
		w.expect(s, 80, int64(st.Pods[1].Pulled))
		if err := s.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestIntervalsOfRestartedPodCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 60, nil)
		s := w.open()
		w.start(s)
		w.until(s, "pulled some", func(st collect.Status) bool { return st.Pods[1].Pulled >= 10 })
		w.agents[1].Crash()
		// Once it does not answer, no data of it is in flight.
		pulled := w.until(s, "unreachable", func(st collect.Status) bool { return !st.Pods[1].Reachable }).Pods[1].Pulled
		w.serve(1, agent.Config{Epoch: time.Now()})
		s.SetPods(w.pods())
		st := w.until(s, "restarted", func(st collect.Status) bool { return st.Pods[1].Problem == collect.Restarted })
		if st.Pods[1].Pulled != pulled || !st.Pods[1].Reachable {
			t.Errorf("%+v, pulled before %d", st.Pods[1], pulled)
		}
		w.until(s, "pod 0 complete", func(st collect.Status) bool { return st.Pods[0].Complete })
		s.Lose(1)
		w.until(s, "finished", finished)
		w.expect(s, 60, int64(pulled))
	})
}

func TestBrokenConnectionsLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 150, nil)
		s := w.open()
		w.start(s)
		for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(7 * time.Millisecond) {
			for _, a := range w.agents {
				a.Cut()
			}
		}
		w.until(s, "finished", finished)
		w.expect(s, 150, 150)
	})
}

func TestMissingIntervalsCountAsZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := agenttest.Interval(0, 0, len(ops), step)
		size := len(record.AppendInterval(nil, &one))
		w := newWorld(t, 1, 100, func(_ int, _ *agenttest.Runner, c *agent.Config) { c.MaxBuffered = 10 * size })
		s := w.open()
		w.start(s)
		w.until(s, "pulled some", func(st collect.Status) bool { return st.Pods[0].Pulled >= 5 })
		s.SetPods([]collect.Pod{{Index: 0, Name: "pod-0", Address: "127.0.0.1:1"}}) // unreachable for 200 ms = 40 intervals
		time.Sleep(200 * time.Millisecond)
		s.SetPods(w.pods())
		st := w.until(s, "finished", finished)
		if st.Pods[0].Filled == 0 || st.Pods[0].Lost < st.Pods[0].Filled || st.Pods[0].Pulled != 100 {
			t.Fatalf("%+v", st.Pods[0])
		}
		s.Read(func(series *merged.Series) {
			zero := uint64(0)
			for i := range series.Len() {
				if series.At(i).Ops[0].Sent == 0 {
					zero++
				}
			}
			if zero != st.Pods[0].Filled || series.Len() != 100 || len(series.Notes) == 0 ||
				!strings.Contains(series.Notes[0], "counts as zero") ||
				len(series.Holes()) == 0 {
				t.Errorf("%d zero intervals of %d, filled %d, notes %q, holes %v", zero, series.Len(), st.Pods[0].Filled,
					series.Notes, series.Holes())
			}
		})
	})
}

func TestFailureMidRunEndsTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 40, func(pod int, r *agenttest.Runner, _ *agent.Config) {
			if pod == 1 {
				r.FailAfter, r.Panic = 15, "boom"
			}
		})
		s := w.open()
		w.start(s)
		st := w.until(s, "finished", finished)
		if p := st.Pods[1]; st.Failed != 1 || p.Reason != agent.ReasonOther || p.Message != "panic: boom" || p.Pulled != 15 {
			t.Errorf("%+v", p)
		}
		w.expect(s, 40, 15)
		if err := s.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestStopPullsAllIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, 1e6, nil)
		s := w.open()
		w.start(s)
		w.until(s, "pulled some", func(st collect.Status) bool { return st.Pods[0].Pulled >= 5 })
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		st := w.until(s, "finished", finished)
		for _, p := range st.Pods {
			if p.State != agent.Finished || p.Pulled != p.LastSeq || p.Pulled < 5 || p.Pulled > 1000 {
				t.Errorf("%+v", p)
			}
		}
	})
}

// TestTruthShortLoadIsPolledAtTheUsualInterval bounds the number of requests at the end of a load that is shorter than
// StatusEvery: the session requests the reason of the end once, does not send requests without a pause until
// StatusEvery has passed since it was opened, and has finished as soon as it has the last interval.
func TestTruthShortLoadIsPolledAtTheUsualInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 20, nil)
		w.config.StatusEvery = collect.DefaultStatusEvery
		var mu sync.Mutex
		var writes []time.Time // one for each request on an open connection
		w.config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := w.network.Dial(ctx, network, address)
			return notedConn{c, func(at time.Time) {
				mu.Lock()
				defer mu.Unlock()
				writes = append(writes, at)
			}}, err
		}
		s := w.open()
		at := w.start(s)
		w.until(s, "finished", finished)
		late := time.Since(at) - 20*step
		mu.Lock()
		defer mu.Unlock()
		before := slices.IndexFunc(writes, at.Before)
		// A pull every PullEvery, of which the last one detects the end of the load, and the status twice: with the first
		// pull, to learn that the load has begun, and immediately after the last one for the reason of the end.
		n, most := len(writes)-before, int(time.Since(at)/w.config.PullEvery)+3
		truth.Report(t, "T24", "requests of the operator to a pod whose load ends after 0.1 s", fmt.Sprint("at most ", most),
			strconv.Itoa(n), n <= most)
		truth.Report(t, "T24", "from the end of this load to Finished",
			fmt.Sprint("at most ", w.config.PullEvery+2*time.Millisecond), late.String(),
			late <= w.config.PullEvery+2*time.Millisecond)
		if last := writes[len(writes)-2:]; !last[0].Equal(last[1]) || last[1].Sub(at) < 20*step {
			t.Errorf("the last requests were made at %v, the load ended at %v", last, at.Add(20*step))
		}
	})
}

// notedConn calls note at each write.
type notedConn struct {
	net.Conn
	note func(time.Time)
}

func (c notedConn) Write(b []byte) (int, error) {
	c.note(time.Now())
	return c.Conn.Write(b)
}

// TestPulledAtEveryVisit: what a pod has recorded is pulled every PullEvery, also when its status is due, so that a
// lost pod takes no more with it.
func TestPulledAtEveryVisit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 400, nil)
		w.config.PollEvery, w.config.PullEvery, w.config.StatusEvery = 50*time.Millisecond, 100*time.Millisecond,
			500*time.Millisecond
		s := w.open()
		at := w.start(s)
		time.Sleep(time.Until(at))
		longest := time.Duration(0)
		for ; time.Since(at) < 400*step; time.Sleep(time.Millisecond) {
			synctest.Wait()
			longest = max(longest, time.Since(at)-time.Duration(s.Status().Pods[0].Pulled)*step)
		}
		if most := w.config.PullEvery + 2*step; longest > most {
			t.Errorf("%v of the record were not pulled, want at most %v", longest, most)
		}
	})
}

func TestWrongCredentialsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 10, nil)
		other, err := agent.NewCredentials()
		if err != nil {
			t.Fatal(err)
		}
		good := w.config.Credentials
		for name, c := range map[string]struct {
			credentials agent.Credentials
			want        string
		}{
			"wrong token":       {agent.Credentials{CertificatePEM: good.CertificatePEM, Token: other.Token}, "401"},
			"wrong certificate": {agent.Credentials{CertificatePEM: other.CertificatePEM, Token: good.Token}, "certificate"},
		} {
			w.config.Credentials = c.credentials
			s := w.open()
			st := w.until(s, name, func(st collect.Status) bool { return st.Pods[0].Err != "" })
			if p := st.Pods[0]; !strings.Contains(p.Err, c.want) || p.Reachable || p.State != "" {
				t.Errorf("%s: %+v", name, p)
			}
			s.Close()
		}
	})
}

func TestChangedSignalsEveryStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 5, nil)
		s := w.open()
		for started := false; !s.Status().Finished; {
			<-s.Changed() // without it all goroutines are blocked, and the bubble fails
			if !started && s.Status().Pods[0].State == agent.Ready {
				started = true
				w.start(s)
			}
		}
	})
}

func TestCloseDoesNotWaitForADeadPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 5, nil)
		dialled := make(chan struct{}, 100)
		w.config.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			dialled <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		s := w.open()
		<-dialled
		begin := time.Now()
		s.Close()
		if took := time.Since(begin); took != 0 {
			t.Errorf("Close took %v", took)
		}
	})
}

func TestOpenRefusesBadConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := newWorld(t, 1, 1, nil).config
		for name, change := range map[string]func(*collect.Config){
			"no run":         func(c *collect.Config) { c.Run = "" },
			"no pods":        func(c *collect.Config) { c.Pods = 0 },
			"no step":        func(c *collect.Config) { c.Step = 0 },
			"no operations":  func(c *collect.Config) { c.Ops = nil },
			"no store":       func(c *collect.Config) { c.Store = nil },
			"no certificate": func(c *collect.Config) { c.Credentials = agent.Credentials{} },
		} {
			config := good
			change(&config)
			if s, err := collect.Open(config); err == nil {
				s.Close()
				t.Errorf("%s was accepted", name)
			}
		}
	})
}
