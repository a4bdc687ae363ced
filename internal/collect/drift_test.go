package collect_test

import (
	"context"
	"fmt"
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

// drifting is the clock of a pod, and a load that succeeds all the time but for an outage, and fails at its begin. Only
// Run is of interest.
type drifting struct {
	agenttest.Runner
	epoch  time.Time
	rate   float64 // of the clock, 1 = as the true time
	length time.Duration
	step   time.Duration

	from, to time.Duration // the outage, in true time since the start
}

// Now is the pod's clock.
func (d *drifting) Now() time.Time { return d.epoch.Add(d.own(time.Since(d.epoch))) }

// own converts a true time to the pod's.
func (d *drifting) own(t time.Duration) time.Duration { return time.Duration(float64(t) * d.rate) }

// StartedAt is soon after the process began.
func (d *drifting) StartedAt() time.Time { return d.epoch.Add(time.Second) }

// Run delivers intervals on the pod's clock; start is on it, too.
func (d *drifting) Run(ctx context.Context, start time.Time, sink func(*record.Interval)) error {
	truly := d.epoch.Add(time.Duration(float64(start.Sub(d.epoch)) / d.rate))
	from, to := int64(d.own(d.from)), int64(d.own(d.to))
	for i := range int64(d.length / d.step) {
		begin, end := i*int64(d.step), (i+1)*int64(d.step)
		if err := agenttest.WaitUntil(ctx, truly.Add(time.Duration(float64(end)/d.rate))); err != nil {
			return err
		}
		iv := record.Interval{
			Index: i, Pods: 1, Ops: make([]record.Op, len(ops)), FirstError: -1, LastError: -1, FirstOK: begin, LastOK: end - 1,
		}
		iv.Ops[0].Sent, iv.Ops[0].OK = 1000, 1000
		if to >= begin && to < end {
			iv.Gaps = []record.Gap{{From: from, To: to}}
		}
		if from >= begin && from < end {
			iv.FirstError, iv.LastError = from, from
		}
		sink(&iv)
	}
	return nil
}

// TestTruthClocksOfPodsDrift: the clocks of two pods, without NTP, run apart by 20 ppm, 430 ms in 6 h. An outage of 300
// ms at the end of the run begins for both at the same instant, but not by their clocks.
func TestTruthClocksOfPodsDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step, length, from, outage = time.Second, 6 * time.Hour, 6*time.Hour - 89600*time.Millisecond,
			300 * time.Millisecond
		w := newWorld(t, 0, 0, nil)
		w.config.Pods, w.config.Step = 2, step
		w.config.PullEvery, w.config.StatusEvery, w.config.Checkpoints.Every = 5*time.Second, 10*time.Second, time.Hour
		var pods []collect.Pod
		for i, ppm := range []float64{10, -10} {
			d := &drifting{epoch: time.Now(), rate: 1 + ppm/1e6, length: length, step: step, from: from, to: from + outage}
			config := agent.Config{
				Plan:   &plan.Plan{Run: "run", Pods: 2, Interval: step},
				Pod:    i,
				Runner: d,
				Epoch:  d.epoch,
				Now:    d.Now,
				Linger: time.Hour,
			}
			a := agenttest.Serve(t, w.network, fmt.Sprintf("pod-%d", i), w.config.Credentials, config)
			pods = append(pods, collect.Pod{Index: i, Address: a.Address})
		}
		s, err := collect.Open(w.config)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		s.SetPods(pods)
		w.start(s)
		for !s.Finished() {
			time.Sleep(time.Minute)
		}
		s.Read(func(series *merged.Series) {
			u := series.ClockUncertainty
			if u <= 0 || u > 5*time.Millisecond {
				t.Errorf("clocks are uncertain by %v", u)
			}
			gaps := series.Gaps()
			if len(gaps) != 1 {
				t.Fatalf("gaps %v", gaps)
			}
			length, begin := time.Duration(gaps[0].To-gaps[0].From), time.Duration(gaps[0].From)
			scenario := "clocks of two pods drift by 20 ppm for 6 h: "
			truth.Report(t, "T2", scenario+"outage", outage.String(), fmt.Sprintf("%v ± %v", length, 2*u),
				(length-outage).Abs() <= 2*u)
			truth.Report(t, "T2", scenario+"its begin", from.String(), fmt.Sprintf("%v ± %v", begin, u), (begin-from).Abs() <= u)
			spread := series.ClockSpread.Round(10 * time.Millisecond)
			truth.Report(t, "T2", scenario+"clockSpread", "430ms", spread.String(), spread == 430*time.Millisecond)
			iv := series.At(int(from / step))
			first := time.Duration(iv.FirstError)
			truth.Report(t, "T2", scenario+"first error", from.String(), first.String(), (first-from).Abs() <= u)
			if len(series.Notes) == 0 {
				t.Error("no note about the drift")
			}
		})
	})
}
