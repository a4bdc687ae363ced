package merged

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
)

func TestAgentReadingsAreKeptPerSecond(t *testing.T) {
	s := newTestSeries(2)
	list := silentFor(25)
	for i := range list {
		list[i].Agents = []record.AgentUse{
			{At: int64(i) * int64(testStep), Pod: 7, CPUSeconds: float64(i), Memory: int64(100 - i)},
		}
	}
	list[3].Agents[0].RoundTrip, list[4].Agents[0].RoundTrip, list[15].Agents[0].RoundTrip = 500, 300, 900
	addAll(t, s, 1, list)
	want := []record.AgentUse{
		{At: 900e6, Pod: 1, CPUSeconds: 9, Memory: 100, RoundTrip: 300},
		{At: 1900e6, Pod: 1, CPUSeconds: 19, Memory: 90, RoundTrip: 900},
		{At: 2400e6, Pod: 1, CPUSeconds: 24, Memory: 80},
	}
	if diff := difference(want, s.Agents()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The number of readings is limited for any number of pods and any duration, and they cover the whole run, in any order
// of the pods.
func TestAgentReadingsAreBounded(t *testing.T) {
	const pods, seconds, mostReadings = 50, 300, 4096
	one := func(pod, i int) *record.Interval {
		return &record.Interval{
			Index: int64(i), Pods: 1, FirstError: -1, LastError: -1, FirstOK: -1, LastOK: -1,
			Agents: []record.AgentUse{{At: int64(i+1) * int64(time.Second), CPUSeconds: float64(pod + i)}},
		}
	}
	a := New("run", time.Unix(0, 0), time.Second, nil, pods)
	b := New("run", time.Unix(0, 0), time.Second, nil, pods)
	for pod := range pods {
		for i := range seconds {
			if err := a.Add(pod, one(pod, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range seconds {
		for pod := pods - 1; pod >= 0; pod-- {
			if err := b.Add(pod, one(pod, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := difference(a, b, sameSeries); diff != "" {
		t.Errorf("another order of pods:\n%s", diff)
	}
	got := a.Agents()
	if len(got) > mostReadings || len(got) < mostReadings/2 {
		t.Errorf("%d readings", len(got))
	}
	if first, last := got[0], got[len(got)-1]; first.At > 8e9 || last.At != seconds*1e9 {
		t.Errorf("from %v to %v", first, last)
	}
}
