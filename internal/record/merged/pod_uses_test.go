package merged

import (
	"fmt"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
)

func podUseAt(at time.Duration, pod string, cpu float64, memory int64) record.PodUse {
	return record.PodUse{
		At: int64(at), Window: int64(15 * time.Second), Name: "api", Pod: pod, Container: "app", CPU: cpu, MaxCPU: cpu,
		CPULimit: 1, Memory: memory,
	}
}

// The metrics API repeats a reading until it has a newer one.
func TestPodUsesAreKeptOnce(t *testing.T) {
	s := newTestSeries(1)
	first, second := podUseAt(-5*time.Second, "api-0", 0.5, 7), podUseAt(10*time.Second, "api-0", 0.6, 9)
	other := podUseAt(3*time.Second, "api-1", 0.1, 2)
	for i, c := range []struct {
		uses  []record.PodUse
		added bool
	}{
		{[]record.PodUse{first}, true},
		{[]record.PodUse{first}, false},
		{[]record.PodUse{second, other}, true},
		{[]record.PodUse{second, first}, false},
	} {
		if got := s.AddPodUses(c.uses); got != c.added {
			t.Errorf("call %d: added %v", i, got)
		}
	}
	want := []record.PodUse{first, other, second}
	if diff := difference(want, s.PodUses()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := difference(want, reencode(t, s).PodUses()); diff != "" {
		t.Errorf("after encoding (-want +got):\n%s", diff)
	}
}

// A day of twenty pods stays within the bound, and keeps means, maxima and the whole time.
func TestPodUsesAreBounded(t *testing.T) {
	s := newTestSeries(1)
	const pods, readings, mostReadings = 20, 24 * 60 * 4, 4096
	for i := range readings {
		var now []record.PodUse
		for pod := range pods {
			use := podUseAt(time.Duration(i+1)*15*time.Second, fmt.Sprintf("api-%d", pod), 0.5, 100)
			if i == readings/2 {
				use.CPU, use.MaxCPU, use.Memory = 0.9, 0.9, 200
			}
			now = append(now, use)
		}
		s.AddPodUses(now)
	}
	uses := s.PodUses()
	if len(uses) > mostReadings || len(uses) < mostReadings/4 {
		t.Errorf("%d readings are kept", len(uses))
	}
	var window int64
	var cpu, most float64
	var memory int64
	for _, u := range uses {
		window += u.Window
		cpu += u.CPU * time.Duration(u.Window).Seconds()
		most, memory = max(most, u.MaxCPU), max(memory, u.Memory)
	}
	if want := pods * readings * 15 * int64(time.Second); window != want {
		t.Errorf("the readings are about %s, want %s", time.Duration(window), time.Duration(want))
	}
	if want := 15.0 * pods * (0.5*readings + 0.4); cpu < want-1 || cpu > want+1 || most != 0.9 || memory != 200 {
		t.Errorf("%.1f core-seconds, at most %v cores and %d bytes; want %.1f, 0.9 and 200", cpu, most, memory, want)
	}
}
