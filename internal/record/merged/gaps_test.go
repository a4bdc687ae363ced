package merged

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/silence"
)

// podOf builds a pod's intervals, over n steps, from the instants of its successes in milliseconds; the gap log is that
// of a pod.
func podOf(n int, successes ...int64) []*record.Interval {
	list := silentFor(n)
	last := int64(0)
	for _, ms := range successes {
		at := ms * int64(time.Millisecond)
		iv := list[at/int64(testStep)]
		iv.Ops[0].OK++
		iv.FirstOK, iv.LastOK = record.Earlier(iv.FirstOK, at), at
		if at-last > silence.MinGap {
			iv.Gaps = append(iv.Gaps, record.Gap{From: last, To: at})
		}
		last = at
	}
	return list
}

// every lists the instants from a to b, one per 2 ms.
func every(a, b int64) []int64 {
	var list []int64
	for ; a <= b; a += 2 {
		list = append(list, a)
	}
	return list
}

func join(lists ...[]int64) []int64 {
	var all []int64
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func TestSeriesGaps(t *testing.T) {
	gap := func(from, to int64, open bool) record.Gap {
		return record.Gap{From: from * int64(time.Millisecond), To: to * int64(time.Millisecond), Open: open}
	}
	steady := every(0, 998)
	for _, c := range []struct {
		name string
		pods [][]*record.Interval
		do   func(*Series)
		want []record.Gap
	}{
		{name: "no interval yet", pods: [][]*record.Interval{nil}},
		{name: "no gap", pods: [][]*record.Interval{podOf(10, steady...)}},
		{name: "no success at all", pods: [][]*record.Interval{podOf(10)}, want: []record.Gap{gap(0, 1000, true)}},
		{
			name: "first success late",
			pods: [][]*record.Interval{podOf(10, every(40, 998)...)},
			want: []record.Gap{gap(0, 40, false)},
		},
		{
			name: "one gap",
			pods: [][]*record.Interval{podOf(10, join(every(0, 300), every(450, 998))...)},
			want: []record.Gap{gap(300, 450, false)},
		},
		{
			name: "still open",
			pods: [][]*record.Interval{podOf(10, every(0, 700)...)},
			want: []record.Gap{gap(700, 1000, true)},
		},
		{
			name: "a success between two gaps keeps them apart",
			pods: [][]*record.Interval{podOf(10, join(every(0, 300), []int64{350}, every(400, 998))...)},
			want: []record.Gap{gap(300, 350, false), gap(350, 400, false)},
		},
		{
			name: "the other pod had none",
			pods: [][]*record.Interval{podOf(10, join(every(0, 300), every(450, 998))...), podOf(10, steady...)},
		},
		{
			name: "overlap",
			pods: [][]*record.Interval{
				podOf(10, join(every(0, 300), every(450, 998))...),
				podOf(10, join(every(0, 350), every(600, 998))...),
			},
			want: []record.Gap{gap(350, 450, false)},
		},
		{
			name: "overlap too short",
			pods: [][]*record.Interval{
				podOf(10, join(every(0, 300), every(450, 998))...),
				podOf(10, join(every(0, 446), every(600, 998))...),
			},
		},
		{
			name: "the success of one cuts the gap of the other",
			pods: [][]*record.Interval{
				podOf(10, join(every(0, 300), every(600, 998))...),
				podOf(10, join(every(0, 300), []int64{400}, every(600, 998))...),
			},
			want: []record.Gap{gap(300, 400, false), gap(400, 600, false)},
		},
		{
			name: "only the complete part",
			pods: [][]*record.Interval{podOf(20, join(every(0, 300), every(1100, 1998))...), podOf(8, every(0, 320)...)},
			want: []record.Gap{gap(320, 800, true)},
		},
		{
			name: "lost pod is left out",
			pods: [][]*record.Interval{podOf(10, join(every(0, 700), every(850, 998))...), podOf(5, every(0, 498)...)},
			do:   func(s *Series) { s.Lose(1) },
			want: []record.Gap{gap(700, 850, false)},
		},
		{
			name: "lost in the middle of a gap",
			pods: [][]*record.Interval{podOf(10, join(every(0, 400), every(850, 998))...), podOf(5, every(0, 420)...)},
			do:   func(s *Series) { s.Lose(1) },
			want: []record.Gap{gap(420, 850, false)},
		},
		{
			name: "finished pod is left out",
			pods: [][]*record.Interval{podOf(10, join(every(0, 700), every(850, 998))...), podOf(5, every(0, 450)...)},
			do:   func(s *Series) { s.Finish(1) },
			want: []record.Gap{gap(700, 850, false)},
		},
		{
			name: "all finished", pods: [][]*record.Interval{podOf(10, steady...), podOf(5, every(0, 450)...)},
			do: func(s *Series) { s.Finish(0); s.Finish(1) },
		},
		{
			name: "all lost in a gap", pods: [][]*record.Interval{podOf(10, every(0, 600)...), podOf(8, every(0, 700)...)},
			do: func(s *Series) { s.Lose(0); s.Lose(1) }, want: []record.Gap{gap(700, 1000, true)},
		},
		{
			name: "slow load has no open gap", pods: [][]*record.Interval{podOf(10, 0, 300, 600)},
			want: []record.Gap{gap(0, 300, false), gap(300, 600, false)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTestSeries(len(c.pods))
			for p := range c.pods {
				addAll(t, s, p, c.pods[p])
			}
			if c.do != nil {
				c.do(s)
			}
			if diff := difference(c.want, s.Gaps(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestSeriesProbeGaps(t *testing.T) {
	s := newTestSeries(1)
	list := silentFor(20)
	for i := range list {
		if i < 5 || i == 9 {
			list[i].Probe.OK, list[i].Probe.Sent = 10, 10
		}
	}
	list[9].ProbeGaps = []record.Gap{{From: 495e6, To: 905e6}}
	addAll(t, s, 0, list[:3])
	if s.Gaps() == nil || len(s.ProbeGaps()) != 0 || !s.HasProbe() {
		t.Errorf("gaps %v, probe gaps %v, probe %v", s.Gaps(), s.ProbeGaps(), s.HasProbe())
	}
	addAll(t, s, 0, list[:8])
	if diff := difference([]record.Gap{{From: 500e6, To: 800e6, Open: true}}, s.ProbeGaps()); diff != "" {
		t.Error(diff)
	}
	addAll(t, s, 0, list)
	if diff := difference([]record.Gap{{From: 495e6, To: 905e6}, {From: 1000e6, To: 2000e6, Open: true}},
		s.ProbeGaps()); diff != "" {
		t.Error(diff)
	}
	without := newTestSeries(1)
	addAll(t, without, 0, silentFor(20))
	if without.HasProbe() || without.ProbeGaps() != nil {
		t.Error("a run without a probe has probe gaps")
	}
}

// The probe of the first pod ends with it: the other pod, which does not probe, proves no outage.
func TestProbeEndsWithTheLastPodThatProbes(t *testing.T) {
	const step = 100 * time.Millisecond
	s := New("r", time.Unix(0, 0), step, []string{"get"}, 2)
	for i := range int64(100) {
		for pod := range 2 {
			if pod == 0 && i == 50 {
				s.Lose(0)
			}
			if pod == 0 && i >= 50 {
				continue
			}
			iv := &record.Interval{
				Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstOK: -1, LastOK: -1, FirstError: -1, LastError: -1,
			}
			if pod == 0 {
				iv.Probe.Due, iv.Probe.Sent, iv.Probe.OK = 10, 10, 10
			}
			if err := s.Add(pod, iv); err != nil {
				t.Fatal(err)
			}
		}
	}
	if gaps := s.ProbeGaps(); len(gaps) > 0 {
		t.Errorf("the probe has gaps %v after its pod was lost", gaps)
	}
}
