package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/truth"
)

// TestTruthWritesFailWhileReadsSucceed has a demoted primary refuse all writes for 3 s and serve reads: the application
// is down.
func TestTruthWritesFailWhileReadsSucceed(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		const broken, back, length = 4 * time.Second, 7 * time.Second, 12 * time.Second
		p := bare()
		p.Shape = plan.Shape{Rate: 1000, Duration: length}
		p.Workload.Commands[0].Weight, p.Workload.Commands[1].Weight = 1, 4
		r, err := New(p, 0, w.dialled())
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Prepare(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		start, wait := inBackground(t, t.Context(), r)
		time.Sleep(time.Until(start.Add(broken)))
		w.server.SetReadOnly(true)
		time.Sleep(time.Until(start.Add(back)))
		w.server.SetReadOnly(false)
		o, err := wait()
		if err != nil {
			t.Fatal(err)
		}
		addsUp(t, o)
		m := impact.Analyze(seriesOf(t, p, o), impact.Fault{At: broken}, impact.Options{
			BaselineMinimum: time.Second,
			SustainFor:      2 * time.Second,
		})
		about := func(d time.Duration) bool { return d > 2980*time.Millisecond && d < 3010*time.Millisecond }
		truth.Report(t, "T3", "80% GET succeed, all SET get READONLY for 3 s", "outage of writes 3s, of reads 0s",
			fmt.Sprintf("outage of %s %s (%s to %s), of get %s", m.Outage.Of, m.Outage.Value.Round(time.Millisecond),
				m.Outage.AtLeast.Round(time.Millisecond),
				m.Outage.AtMost.Round(time.Millisecond), m.Operations[1].Outage.Value),
			m.Outage.Of == impact.Writes && about(m.Outage.Value) && about(m.Outage.AtLeast) && about(m.Outage.AtMost) &&
				m.Operations[1].Outage.Value == 0)
		set, get := m.Operations[0], m.Operations[1]
		if set.Errors < 500 || set.Errors > 700 || get.Errors != 0 || get.FirstError != -1 || set.Dip != 1 ||
			get.Dip > 0.05 || set.FirstError < 0 || set.FirstError > 10*time.Millisecond ||
			set.LastError < 2990*time.Millisecond || set.LastError > 3*time.Second {
			t.Errorf("set %+v, get %+v", set, get)
		}
		dip, of := m.Dip.Value, m.Dip.Of
		if m.Outages.Writes != m.Outage.Bounded || m.Writes.Errors != set.Errors || m.Reads.Errors != 0 ||
			m.Outages.Reads.Value != 0 || dip != 1 || of != impact.Writes {
			t.Errorf("writes %+v, reads %+v, the worst dip is %.2f of %q", m.Writes, m.Reads, dip, of)
		}
	})
}

// TestTruthRareWritesFail has a demoted primary refuse all writes for 10 s, of a load with few of them: most of the
// time nobody writes.
func TestTruthRareWritesFail(t *testing.T) {
	for _, rate := range []float64{20, 50, 90, 110, 1000} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			virtually(t, 0, func(t *testing.T, w *world) {
				const broken, down, length = 12 * time.Second, 10 * time.Second, 40 * time.Second
				p := bare()
				p.Shape = plan.Shape{Rate: rate, Duration: length}
				p.Workload.Commands[0].Weight, p.Workload.Commands[1].Weight = 1, 9
				r := prepared(t, p, w.dialled())
				start, wait := inBackground(t, t.Context(), r)
				time.Sleep(time.Until(start.Add(broken)))
				w.server.SetReadOnly(true)
				time.Sleep(time.Until(start.Add(broken + down)))
				w.server.SetReadOnly(false)
				o, err := wait()
				if err != nil {
					t.Fatal(err)
				}
				m := impact.Analyze(seriesOf(t, p, o), impact.Fault{At: broken}, impact.Options{BaselineMinimum: time.Second})
				within := func(b durations.Bounded) bool {
					return down*7/10 < b.AtLeast && b.AtLeast <= down && down <= b.AtMost && b.AtMost < down*13/10
				}
				text := func(b durations.Bounded) string {
					return fmt.Sprintf("%s (%s to %s)", b.Value.Round(time.Millisecond), b.AtLeast.Round(time.Millisecond),
						b.AtMost.Round(time.Millisecond))
				}
				truth.Report(t, "T3", fmt.Sprintf("%g requests/s, of which a tenth are SETs that get READONLY for 10 s", rate),
					"outage of Writes and recovery time contain 10s",
					fmt.Sprintf("outage of %s %s, recovery time %s", m.Outage.Of, text(m.Outage.Bounded), text(m.RecoveryTime)),
					m.Outage.Of == impact.Writes && within(m.Outage.Bounded) && m.Recovered && within(m.RecoveryTime))
			})
		})
	}
}
