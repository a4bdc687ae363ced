package impact

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/recorded"
)

const ms = time.Millisecond

func seconds(from, to float64) summary.Window {
	return summary.Window{From: time.Duration(from * float64(time.Second)), To: time.Duration(to * float64(time.Second))}
}

// reasons returns the reasons of doubts.
func reasons(m Impact) string {
	var words []string
	for _, d := range m.Doubts {
		words = append(words, d.Reason)
	}
	return strings.Join(words, " ")
}

// Successes are at 0.5 ms, 1.5 ms, ... by default, so a gap of D in the load is D + 1 ms between successes.
func TestAnalyze(t *testing.T) {
	type want struct {
		dip, minRate               float64
		outage, total, server, end time.Duration
		impact, errors             time.Duration
		recovered                  bool
		recovery                   time.Duration
		lost                       float64
		failed                     uint64
		doubts                     string
	}
	const us = time.Microsecond
	for _, c := range []struct {
		name  string
		load  recorded.Load
		fault Fault
		want  want
	}{
		{
			name:  "no effect",
			load:  recorded.Load{Rate: 1000, Length: 60 * time.Second},
			fault: Fault{At: 40 * time.Second},
			want:  want{minRate: 1000, server: -1, end: -1, impact: -1, recovered: true},
		},
		{
			name:  "3 s without an answer",
			load:  recorded.Load{Rate: 1000, Length: 60 * time.Second, Down: []summary.Window{seconds(40, 43)}, Probe: 100},
			fault: Fault{At: 40 * time.Second, Deadline: 15 * time.Second},
			want: want{
				dip: 1, outage: 3001 * ms, total: 3001 * ms, server: 3010 * ms, end: 3000500 * us, impact: 0,
				recovered: true, recovery: 3000500 * us, lost: 3000,
			},
		},
		{
			name:  "the same, between two intervals",
			load:  recorded.Load{Rate: 1000, Length: 60 * time.Second, Down: []summary.Window{seconds(40.037, 43.037)}},
			fault: Fault{At: 40037 * ms, Deadline: 15 * time.Second},
			want: want{
				dip: 1, outage: 3001 * ms, total: 3001 * ms, server: -1, end: 3000500 * us, impact: 0,
				recovered: true, recovery: 3000500 * us, lost: 3000,
			},
		},
		{
			name:  "half a second of errors",
			load:  recorded.Load{Rate: 1000, Length: 60 * time.Second, Failing: []summary.Window{seconds(40.25, 40.75)}},
			fault: Fault{At: 40 * time.Second},
			want: want{
				dip: 0.5, minRate: 500, outage: 501 * ms, total: 501 * ms, server: -1, end: 750500 * us,
				impact: 249500 * us, errors: 499 * ms,
				recovered: true, recovery: 750500 * us, lost: 500, failed: 500,
			},
		},
		{
			name:  "50 ms without an answer is no dip of a second, but an outage",
			load:  recorded.Load{Rate: 1000, Length: 60 * time.Second, Down: []summary.Window{seconds(40.02, 40.07)}},
			fault: Fault{At: 40 * time.Second},
			want: want{
				dip: 0.05, minRate: 950, outage: 51 * ms, total: 51 * ms, server: -1, end: 70500 * us, impact: 19500 * us,
				recovered: true, recovery: 70500 * us, lost: 50,
			},
		},
		{
			name: "a stall well after the fault does not delay recovery",
			load: recorded.Load{
				Rate:   1000,
				Length: 80 * time.Second,
				Down:   []summary.Window{seconds(40, 42), seconds(42.5, 42.52)},
			},
			fault: Fault{At: 40 * time.Second},
			want: want{
				dip: 1, outage: 2001 * ms, total: 2022 * ms, server: -1, end: 2000500 * us, recovered: true,
				recovery: 2000500 * us, lost: 2000,
			},
		},
		{
			name:  "only the probe feels it, from half a second after t0",
			load:  recorded.Load{Rate: 1000, Length: 60 * time.Second, Aside: []summary.Window{seconds(40.5, 40.8)}, Probe: 100},
			fault: Fault{At: 40 * time.Second},
			want:  want{minRate: 1000, server: 310 * ms, end: -1, impact: -1, recovered: true},
		},
		{
			name:  "only the probe feels it, from 5 s after t0",
			load:  recorded.Load{Rate: 1000, Length: 60 * time.Second, Aside: []summary.Window{seconds(45, 45.3)}, Probe: 100},
			fault: Fault{At: 40 * time.Second},
			want:  want{minRate: 1000, server: 310 * ms, end: -1, impact: -1, recovered: true},
		},
		{
			name: "a gap as in the baseline is one, but the load need not recover from it",
			load: recorded.Load{
				Rate:   1000,
				Length: 80 * time.Second,
				Down:   []summary.Window{seconds(30, 30.03), seconds(40.2, 40.22)},
			},
			fault: Fault{At: 40 * time.Second},
			want: want{
				minRate: 980, dip: 0.02, outage: 21 * ms, total: 21 * ms, server: -1, end: 220500 * us, impact: 199500 * us,
				recovered: true,
			},
		},
		{
			name:  "never recovered",
			load:  recorded.Load{Rate: 1000, Length: 80 * time.Second, Down: []summary.Window{seconds(40, 80)}},
			fault: Fault{At: 40 * time.Second, Deadline: 20 * time.Second},
			want: want{
				dip: 1, outage: 40*time.Second + 500*us, total: 40*time.Second + 500*us, server: -1, end: -1, impact: 0,
				recovery: -1, lost: 20000,
			},
		},
		{
			name:  "recovered after the deadline is not recovered",
			load:  recorded.Load{Rate: 1000, Length: 80 * time.Second, Down: []summary.Window{seconds(40, 50)}},
			fault: Fault{At: 40 * time.Second, Deadline: 5 * time.Second},
			want:  want{dip: 1, outage: 10001 * ms, total: 10001 * ms, server: -1, end: 10000500 * us, recovery: -1, lost: 5000},
		},
		{
			name:  "second dip within ten seconds: recovery is after it",
			load:  recorded.Load{Rate: 1000, Length: 80 * time.Second, Down: []summary.Window{seconds(40, 42), seconds(45, 46)}},
			fault: Fault{At: 40 * time.Second},
			want: want{
				dip: 1, outage: 2001 * ms, total: 3002 * ms, server: -1, end: 2000500 * us, recovered: true,
				recovery: 6000500 * us, lost: 3000,
			},
		},
		{
			name:  "half the throughput for 4 s has no gap",
			load:  recorded.Load{Rate: 1000, Length: 80 * time.Second, Slow: []summary.Window{seconds(40, 44)}},
			fault: Fault{At: 40 * time.Second},
			// From 43.8 s on, 200 ms at half speed in a window leave 90 %.
			want: want{
				dip: 0.5, minRate: 500, server: -1, end: -1, impact: -1, recovered: true, recovery: 4 * time.Second, lost: 2000,
			},
		},
		{
			name:  "at the record's start",
			load:  recorded.Load{Rate: 1000, Length: 30 * time.Second, Down: []summary.Window{seconds(0, 2)}},
			fault: Fault{At: 0},
			want: want{
				outage:   2*time.Second + 500*us,
				total:    2*time.Second + 500*us,
				server:   -1,
				end:      2*time.Second + 500*us,
				recovery: -1,
				doubts:   "BaselineTooShort",
			},
		},
		{
			name:  "too little before it for a rate",
			load:  recorded.Load{Rate: 1000, Length: 30 * time.Second, Down: []summary.Window{seconds(1, 2)}},
			fault: Fault{At: 500 * time.Millisecond},
			want: want{
				outage: 1001 * ms, total: 1001 * ms, server: -1, end: 1500500 * us, impact: 499500 * us, recovery: -1,
				doubts: "BaselineTooShort",
			},
		},
		{
			name:  "too short a baseline",
			load:  recorded.Load{Rate: 1000, Length: 30 * time.Second, Down: []summary.Window{seconds(5, 6)}},
			fault: Fault{At: 5 * time.Second},
			want: want{
				dip: 1, outage: 1001 * ms, total: 1001 * ms, server: -1, end: 1000500 * us, recovered: true, recovery: 1000500 * us,
				lost:   1000,
				doubts: "BaselineTooShort",
			},
		},
		{
			name:  "no load at all",
			load:  recorded.Load{Rate: 1000, Length: 60 * time.Second, Down: []summary.Window{seconds(0, 60)}},
			fault: Fault{At: 40 * time.Second, Deadline: 10 * time.Second},
			want: want{
				outage: 20 * time.Second, total: 20 * time.Second, server: -1, end: -1, impact: -1, recovery: -1, doubts: "NoLoad",
			},
		},
		{
			name:  "few requests",
			load:  recorded.Load{Rate: 2, Length: 60 * time.Second, Down: []summary.Window{seconds(40, 43)}},
			fault: Fault{At: 40 * time.Second},
			want: want{
				dip: 1, outage: 3500 * ms, total: 3500 * ms, server: -1, end: 3250 * ms, recovered: true,
				recovery: 3250 * ms,
				lost:     6.6, doubts: "TooFewSamples",
			},
		},
		{
			name:  "the load ended too early to tell",
			load:  recorded.Load{Rate: 1000, Length: 48 * time.Second, Down: []summary.Window{seconds(40, 41)}},
			fault: Fault{At: 40 * time.Second, Deadline: time.Minute},
			want: want{
				dip: 1, outage: 1001 * ms, total: 1001 * ms, server: -1, end: 1000500 * us, recovery: -1, lost: 1000,
				doubts: "RecordIncomplete",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.load.Record(t)
			s.Finish(0)
			m := Analyze(s, c.fault, Options{})
			got := want{
				m.Dips.All, m.MinRate, m.Outages.Load.Value, m.TotalOutage.Value, m.Outages.Probe.Value,
				m.OutageEnd.Value, m.TimeToImpact.Value, m.ErrorWindow,
				m.Recovered, m.RecoveryTime.Value, m.LostRequests, m.Errors, reasons(m),
			}
			if c.name == "few requests" && got.lost > 0 {
				got.lost = c.want.lost // one request per five intervals: the sum of the shortfalls of the others is random
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(want{}), approx); diff != "" {
				t.Errorf("(-want +got)\n%s%v", diff, m.Doubts)
			}
			if c.want.failed > 0 && m.ErrorsByClass[record.ClassReadOnly] != c.want.failed {
				t.Errorf("errors by class %v", m.ErrorsByClass)
			}
		})
	}
}

var approx = cmp.Comparer(func(a, b float64) bool { return near(a, b, 1e-6) || math.IsNaN(a) && math.IsNaN(b) })

func TestAnalyzeLatencyAndBaseline(t *testing.T) {
	s := recorded.Load{Rate: 1000, Length: 70 * time.Second, Down: []summary.Window{seconds(40, 43)}}.Record(t)
	m := Analyze(s, Fault{At: 40 * time.Second}, Options{MeasuredFrom: 20 * time.Second})
	if m.BaselineRate != 1000 || m.BaselineNoise != 0 || !near(m.RecoveredThroughput, 1, 1e-3) {
		t.Errorf("baseline %v, noise %v, degraded %v", m.BaselineRate, m.BaselineNoise, m.RecoveredThroughput)
	}
	// 43.0005 s is the recovery: the interval from 43.0 s to 43.1 s is the last of the fault.
	if m.Before.Count != 20_000 || m.During.Count != 100 || m.After.Count != 10_000 ||
		m.Before.P50 != 300*time.Microsecond {
		t.Errorf("before %+v\nduring %+v\nafter %+v", m.Before, m.During, m.After)
	}
	if m := Analyze(s, Fault{At: 40 * time.Second}, Options{MeasuredFrom: 35 * time.Second}); m.Before.Count != 5000 ||
		reasons(m) != "BaselineTooShort" {
		t.Errorf("measured from 35 s: %d before, doubts %v", m.Before.Count, m.Doubts)
	}
}

func TestAnalyzeUnsteadyBaseline(t *testing.T) {
	// A second in three at half speed: rates 1000, 1000, 500: mean 833, standard deviation about 240, so 29 %.
	l := recorded.Load{Rate: 1000, Length: 60 * time.Second}
	for at := 0.0; at < 40; at += 3 {
		l.Slow = append(l.Slow, seconds(at, at+1))
	}
	m := Analyze(l.Record(t), Fault{At: 40 * time.Second}, Options{})
	if reasons(m) != BaselineUnsteady || !strings.Contains(m.Doubts[0].Message, "28.8 %") {
		t.Errorf("doubts %v", m.Doubts)
	}
	if m.BaselineRate != 1000 || m.BaselineNoise != 0 {
		t.Errorf("baseline %v, noise %v", m.BaselineRate, m.BaselineNoise)
	}
}

func TestAnalyzeLostPod(t *testing.T) {
	l := recorded.Load{Rate: 1000, Length: 60 * time.Second, Down: []summary.Window{seconds(40, 41)}, Pods: 2}
	s := merged.New("run", time.Unix(0, 0), recorded.Step, []string{"get"}, 2)
	for p := range 2 {
		for i, iv := range l.Intervals(p, 2) {
			if p == 1 && i == 450 {
				break
			}
			if err := s.Add(p, iv); err != nil {
				t.Fatal(err)
			}
		}
	}
	fault := Fault{At: 40 * time.Second, Deadline: 5 * time.Second}
	if m := Analyze(s, fault, Options{}); m.Recovered || len(m.Doubts) != 0 {
		t.Errorf("while the pod is awaited: recovered %v, doubts %v", m.Recovered, m.Doubts)
	}
	s.Lose(1)
	m := Analyze(s, fault, Options{})
	if m.Recovered || reasons(m) != RecordIncomplete ||
		!strings.Contains(m.Doubts[0].Message, "only 1 of 2 load pods delivered between 45s") {
		t.Errorf("recovered %v, doubts %v", m.Recovered, m.Doubts)
	}
	if m.Outage.Value != 1001*ms {
		t.Errorf("outage %v", m.Outage.Value)
	}
}

func TestAnalyzeDegraded(t *testing.T) {
	l := recorded.Load{
		Rate:   1000,
		Length: 80 * time.Second,
		Down:   []summary.Window{seconds(40, 41)},
		Slow:   []summary.Window{seconds(41, 80)},
	}
	s := l.Record(t)
	if m := Analyze(s, Fault{At: 40 * time.Second}, Options{}); m.Recovered {
		t.Error("half the throughput is not recovered by default")
	}
	m := Analyze(s, Fault{At: 40 * time.Second}, Options{RecoveredShare: 0.4})
	if !m.Recovered || !near(m.RecoveredThroughput, 0.5, 0.001) || m.RecoveryTime.Value < 990*ms ||
		m.RecoveryTime.Value > 1010*ms {
		t.Errorf("recovered %v after %v at %v", m.Recovered, m.RecoveryTime.Value, m.RecoveredThroughput)
	}
}

// The recovery time of a simple outage is its length, for any length and position on the grid.
func TestRecoveryIsAsLongAsTheOutage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 150 {
		at := 40*time.Second + time.Duration(r.Int64N(int64(time.Second)))
		length := 20*ms + time.Duration(r.Int64N(int64(4*time.Second)))
		l := recorded.Load{Rate: 1000, Length: 60 * time.Second, Down: []summary.Window{{From: at, To: at + length}}}
		m := Analyze(l.Record(t), Fault{At: at}, Options{})
		if !m.Recovered || (m.RecoveryTime.Value-length).Abs() > recorded.Step || (m.Outage.Value-length).Abs() > 2*ms ||
			m.OutageEnd.Value > m.RecoveryTime.Value {
			t.Errorf("down for %v from %v: outage %v until %v, recovered %v after %v", length, at, m.Outage.Value,
				m.OutageEnd.Value, m.Recovered, m.RecoveryTime.Value)
		}
	}
}

func TestAnalyzeIsIndependentOfStartTime(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		at, length := 40*time.Second+time.Duration(r.Int64N(1e9)), time.Duration(r.Int64N(3e9))
		shift := time.Duration(1+r.IntN(20)) * recorded.Step
		l := recorded.Load{
			Rate:    500,
			Length:  60 * time.Second,
			Failing: []summary.Window{{From: at, To: at + length}},
			Probe:   50,
		}
		later := l
		later.Length += shift
		later.Late = shift
		later.Failing = []summary.Window{{From: at + shift, To: at + shift + length}}
		a := Analyze(l.Record(t), Fault{At: at}, Options{MeasuredFrom: 5 * time.Second})
		b := Analyze(later.Record(t), Fault{At: at + shift}, Options{MeasuredFrom: 5*time.Second + shift})
		if diff := cmp.Diff(a, b, approx); diff != "" {
			t.Fatalf("shifted by %v:\n%s", shift, diff)
		}
	}
}

func TestAnalyzeScalesWithTheRate(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 10 {
		at, length := 40*time.Second+time.Duration(r.IntN(10))*recorded.Step, time.Duration(1+r.IntN(30))*recorded.Step
		l := recorded.Load{Rate: 400, Length: 60 * time.Second, Failing: []summary.Window{{From: at, To: at + length}}}
		fast := l
		fast.Rate *= 5
		a, b := Analyze(l.Record(t), Fault{At: at}, Options{}), Analyze(fast.Record(t), Fault{At: at}, Options{})
		if b.BaselineRate != 5*a.BaselineRate || b.Errors != 5*a.Errors || !near(b.LostRequests, 5*a.LostRequests, 1e-6) ||
			!near(a.Dips.All, b.Dips.All, 1e-9) ||
			(a.RecoveryTime.Value-b.RecoveryTime.Value).Abs() > 3*ms || (a.Outage.Value-b.Outage.Value).Abs() > 5*ms {
			t.Errorf("%v from %v: slow %+v\nfast %+v", length, at, a, b)
		}
	}
}

func TestAnalyzeIsIndependentOfPods(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	l := recorded.Load{Rate: 1200, Length: 60 * time.Second, Failing: []summary.Window{seconds(40.33, 42.71)}, Pods: 3}
	first := Analyze(l.Record(t), Fault{At: 40300 * ms}, Options{})
	for range 5 {
		s := merged.New("run", time.Unix(0, 0), recorded.Step, []string{"get"}, 3)
		lists := [][]*record.Interval{l.Intervals(0, 3), l.Intervals(1, 3), l.Intervals(2, 3)}
		names := []int{0, 1, 2}
		r.Shuffle(3, func(i, j int) { names[i], names[j] = names[j], names[i] })
		for left := slices.Clone(names); len(left) > 0; {
			p := left[r.IntN(len(left))]
			list := lists[names[p]]
			if s.Next(p) == int64(len(list)) {
				left = slices.DeleteFunc(left, func(q int) bool { return q == p })
				continue
			}
			if err := s.Add(p, list[s.Next(p)]); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(first, Analyze(s, Fault{At: 40300 * ms}, Options{}), approx); diff != "" {
			t.Fatal(diff)
		}
	}
	// One pod with the whole load measures the same outage.
	l.Pods = 1
	one := Analyze(l.Record(t), Fault{At: 40300 * ms}, Options{})
	if diff := cmp.Diff(first, one, approx); diff != "" {
		t.Errorf("(-3 pods +1 pod)\n%s", diff)
	}
}

func TestSettled(t *testing.T) {
	l := recorded.Load{Rate: 500, Length: 80 * time.Second, Down: []summary.Window{seconds(40, 42)}}
	fault := Fault{At: 40 * time.Second, Deadline: 20 * time.Second}
	s := merged.New("run", time.Unix(0, 0), recorded.Step, []string{"get"}, 1)
	settled := time.Duration(-1)
	for _, iv := range l.Intervals(0, 1) {
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
		if s.End() > 40*time.Second && settled < 0 {
			if Settled(s, fault, Options{}) {
				settled = s.End()
				if m := Analyze(s, fault, Options{}); !m.Recovered {
					t.Error("settled by recovery, but not recovered")
				}
			} else if m := Analyze(s, fault, Options{}); m.Recovered || m.RecoveryTime.Value != -1 || len(m.Doubts) > 0 ||
				m.Dips.All < 0 || m.Dips.All > 1 {
				t.Fatalf("at %v: %+v", s.End(), m)
			}
		}
	}
	if settled < 52*time.Second || settled > 52200*ms {
		t.Errorf("settled at %v: recovery is at 42 s and must hold for 10 s", settled)
	}
	l.Down = []summary.Window{seconds(40, 80)}
	for _, c := range []struct {
		length time.Duration
		want   bool
	}{{69 * time.Second, false}, {71 * time.Second, true}} {
		l.Length = c.length
		if got := Settled(l.Record(t), fault, Options{}); got != c.want {
			t.Errorf("down until %v: settled %v", c.length, got)
		}
	}
	l.Length = 50 * time.Second
	s = l.Record(t)
	s.Finish(0)
	if !Settled(s, fault, Options{}) {
		t.Error("a finished record is not settled")
	}
}

func TestAnalyzeCoarsened(t *testing.T) {
	s := recorded.Load{Rate: 1000, Length: 80 * time.Second, Down: []summary.Window{seconds(40, 43)}}.Record(t)
	fine := Analyze(s, Fault{At: 40 * time.Second}, Options{})
	for s.Step < 2*time.Second {
		s.Coarsen("the test runs")
		m := Analyze(s, Fault{At: 40 * time.Second}, Options{})
		if m.Outage.Value != fine.Outage.Value || m.RecoveryTime.Value != fine.RecoveryTime.Value || m.BaselineRate != 1000 ||
			!near(m.LostRequests, 3000, 1e-6) || m.Dips.All != 1 {
			t.Errorf("per %v: %+v", s.Step, m)
		}
	}
}

func near(a, b, within float64) bool { return a-b <= within && b-a <= within }
