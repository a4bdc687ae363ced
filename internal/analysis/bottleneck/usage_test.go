package bottleneck

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/truth"
)

// uneven is the record of an idle run of 100 s whose CPU usage is multiplied by factor in its last busy seconds.
func uneven(t *testing.T, busy int64, change func(*record.Interval, float64)) *merged.Series {
	t.Helper()
	s := merged.New("run", time.Unix(0, 0), step, []string{"get"}, 1)
	const length = 1000
	for i := range int64(length) {
		iv := idle().interval(i, 0)
		if over := i + 1 - (length - 10*busy); over > 0 {
			change(iv, (time.Duration(over) * step).Seconds())
		}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	return s
}

// 80 s at 35 %, 20 s at all of a core: the mean is 48 %, and the core limited the load.
func TestTruthSaturationIsTheWorstStretch(t *testing.T) {
	main := func(iv *record.Interval, over float64) {
		for k := range iv.Servers {
			iv.Servers[k].CPUMainThreadSeconds += 0.65 * over
			iv.Servers[k].CPUSeconds += 0.65 * over
		}
	}
	agent := func(iv *record.Interval, over float64) { iv.Agents[0].CPUSeconds += 0.65 * over }
	throttled := func(iv *record.Interval, over float64) { iv.Agents[0].ThrottledSeconds += 0.2 * over }
	for _, c := range []struct {
		name     string
		busy     int64
		change   func(*record.Interval, float64)
		limit    float64
		without  []summary.Window
		want     Component
		evidence string
	}{
		{
			"main thread: 80 s at 35 %, 20 s at 100 % of a core", 20, main, 0, nil, RedisMainThread,
			"100% of one core over its busiest 5s, 48% on average",
		},
		{
			"process: 80 s at 40 %, 20 s at 105 % of a core, limit 1.1", 20, main, 1.1, nil, CPULimit,
			"95% of its container's limit of 1.10 cores over its busiest 5s, 48% on average",
		},
		{
			"load pod: 80 s at 30 %, 20 s at 95 % of its limit", 20, agent, 0, nil, LoadGenerator,
			"95% of its limit of 1.00 cores over its busiest 5s, 43% on average",
		},
		{
			"load pod throttled for 20 % of the last 10 s", 10, throttled, 0, nil, LoadGenerator,
			"20% of the time over its busiest 5s, 2% on average",
		},
		{
			"the same within a fault window",
			20,
			main,
			0,
			[]summary.Window{{From: 79 * time.Second, To: 100 * time.Second}},
			None,
			"main thread was 35% busy",
		},
		{"main thread at 100 % for 2 s", 2, main, 0, nil, None, "busy over its busiest 5s, 36% on average"},
	} {
		got := Find(Input{Series: uneven(t, c.busy, c.change), ServerCPULimit: c.limit, Without: c.without})
		truth.Report(t, "T12", c.name, string(c.want)+": "+c.evidence, string(got.Component)+": "+got.Evidence,
			got.Component == c.want && strings.Contains(got.Evidence, c.evidence))
	}
}

// TestSaturationInALargeRun: the record of many pods or servers keeps few readings of each; that one of them was at its
// limit for 20 s stays.
func TestSaturationInALargeRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pods, servers int
		length        time.Duration
		want          Component
		evidence      string
	}{
		{
			100, 1, 10 * time.Minute, LoadGenerator,
			"load pod 3 used 0.98 cores of CPU, 98% of its limit of 1.00 cores over its busiest 5s",
		},
		{
			1000, 1, 5 * time.Minute, LoadGenerator,
			"load pod 3 used 0.98 cores of CPU, 98% of its limit of 1.00 cores over its busiest 5s",
		},
		{1, 24, time.Hour, RedisMainThread, "of Redis at redis-3:6379 used 97% of one core over its busiest 5s"},
	} {
		s := merged.New("run", time.Unix(0, 0), time.Second, []string{"get"}, c.pods)
		busyFrom, busyTo := int64(c.length.Seconds())/2, int64(c.length.Seconds())/2+20
		for i := range int64(c.length / time.Second) {
			for pod := range c.pods {
				iv := &record.Interval{
					Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstError: -1, LastError: -1, FirstOK: -1, LastOK: -1,
				}
				at := (i + 1) * int64(time.Second)
				over := float64(min(max(0, i-busyFrom), busyTo-busyFrom))
				agent := record.AgentUse{At: at, CPUSeconds: 0.2 * float64(i), CPULimit: 1, BusyThreads: 2}
				if pod == 3 {
					agent.CPUSeconds += 0.78 * over
				}
				iv.Agents = []record.AgentUse{agent}
				for k := range c.servers {
					r := record.Server{
						At:                   at,
						Address:              fmt.Sprintf("redis-%d:6379", k),
						RunID:                fmt.Sprint("run ", k),
						CPUSeconds:           0.3 * float64(i),
						CPUMainThreadSeconds: 0.2 * float64(i),
					}
					if k == 3 {
						r.CPUSeconds, r.CPUMainThreadSeconds = r.CPUSeconds+0.77*over, r.CPUMainThreadSeconds+0.77*over
					}
					if iv.Servers = append(iv.Servers, r); pod > 0 {
						iv.Servers = nil
					}
				}
				if err := s.Add(pod, iv); err != nil {
					t.Fatal(err)
				}
			}
		}
		for pod := range c.pods {
			s.Finish(pod)
		}
		packed, err := s.Encode(0)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := merged.Decode(packed)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*merged.Series{s, stored} {
			if got := Find(Input{Series: s}); got.Component != c.want || !strings.Contains(got.Evidence, c.evidence) {
				t.Errorf("%d pods, %d servers, %s: %s: %s", c.pods, c.servers, c.length, got.Component, got.Evidence)
			}
		}
	}
}
