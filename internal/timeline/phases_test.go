package timeline

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/fault/contract"
)

// A recovery is divided at the first event of each kind, and each phase is attributed to the source of its last event.
func TestPhasesOf(t *testing.T) {
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	status := &v1alpha1.RedisFaultStatus{InjectedAt: &metav1.MicroTime{Time: t0}}
	for _, e := range []struct {
		at    time.Duration
		event string
	}{
		{0, Injected},
		{5 * time.Millisecond, FirstError},
		{40 * time.Millisecond, Deleted},
		{2 * time.Second, contract.EventMultiAttach},
		{15 * time.Second, Reverted},
		{20 * time.Second, contract.EventAttached},
		{21 * time.Second, Ready},
		{21100 * time.Millisecond, contract.EventDatasetLoaded},
		{22100 * time.Millisecond, durations.Serves},
		{22200 * time.Millisecond, FirstSuccess},
		{22300 * time.Millisecond, Ready},
		{23 * time.Second, Recovered},
		{30 * time.Second, contract.EventReplicasResynced},
	} {
		Append(status, t0.Add(e.at), e.event, e.event+fmt.Sprint(e.at), "")
	}
	if got := Phases(status, &impact.Impact{Recovered: false}); got != nil {
		t.Errorf("without a recovery: %+v", got)
	}
	phases := Phases(status, &impact.Impact{Recovered: true, RecoveryTime: durations.Exactly(23 * time.Second)})
	var lines []string
	for _, p := range phases {
		lines = append(lines, fmt.Sprintf("%s %s %s", p.Name, time.Duration(p.Took.Value), p.Source))
	}
	want := []string{
		"FirstError 5ms Client", "PodDeleted 35ms Kubernetes", "MultiAttachError 1.96s Kubernetes", "Reverted 13s ",
		"VolumeAttached 5s Kubernetes", "Ready 1s Kubernetes",
		"DatasetLoaded 100ms Redis", "Unexplained 1s ", "ServerServes 0s Client", "FirstSuccess 100ms Client",
		"Recovered 800ms Client",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("phases\n%q, want\n%q", lines, want)
	}
	// a lasting fault: an unexplained phase before the revert is attributed to it
	status.RevertedAt = &metav1.MicroTime{Time: t0.Add(22100 * time.Millisecond)}
	if got := Phases(status, &impact.Impact{
		Recovered:    true,
		RecoveryTime: durations.Exactly(23 * time.Second),
	})[7]; got.Name != Active || got.Source != "" {
		t.Errorf("phase %+v while the fault was active", got)
	}
	if last := phases[len(phases)-1]; time.Duration(last.At) != 23*time.Second {
		t.Errorf("it ends %s after the injection", time.Duration(last.At))
	}
}

// A server that answers LOADING is not ready, whatever its readiness probe says, and what it takes is its own time: the
// success of a client shows before the next poll that the data is there.
func TestLoadingIsAPhaseOfRedis(t *testing.T) {
	for _, tc := range []struct {
		name   string
		loaded time.Duration // when the poll saw the data
		object string        // of the event that the data is there
		want   []string
	}{
		{"seen before clients", 5500 * time.Millisecond, "redis-0", []string{
			"ContainerStarted 1s Kubernetes", "Loading 1s Redis", "DatasetLoaded 3.5s Redis", "Unexplained 190ms ",
			"ServerServes 0s Client", "FirstSuccess 10ms Client", "Recovered 1.3s Client",
		}},
		{"seen just after clients", 5702 * time.Millisecond, "redis-0", []string{
			"ContainerStarted 1s Kubernetes", "Loading 1s Redis", "DatasetLoaded 3.69s Redis", "ServerServes 0s Client",
			"FirstSuccess 10ms Client", "Recovered 1.3s Client",
		}},
		{"seen long after clients, which another server serves", 6500 * time.Millisecond, "redis-0", []string{
			"ContainerStarted 1s Kubernetes", "Loading 1s Redis", "Unexplained 3.69s ", "ServerServes 0s Client",
			"FirstSuccess 10ms Client", "DatasetLoaded 800ms Redis", "Recovered 500ms Client",
		}},
		{"of another server", 5702 * time.Millisecond, "redis-1", []string{
			"ContainerStarted 1s Kubernetes", "Loading 1s Redis", "Unexplained 3.69s ", "ServerServes 0s Client",
			"FirstSuccess 10ms Client", "DatasetLoaded 2ms Redis", "Recovered 1.298s Client",
		}},
	} {
		status := &v1alpha1.RedisFaultStatus{InjectedAt: &metav1.MicroTime{Time: t0}}
		add := func(at time.Duration, event, object string) { Append(status, t0.Add(at), event, object, "") }
		add(0, Injected, "redis-0")
		add(time.Second, Started, "redis-0")
		add(2*time.Second, contract.EventLoading, "redis-0")
		add(2200*time.Millisecond, Ready, "redis-0")
		add(5690*time.Millisecond, durations.Serves, "probe")
		add(5700*time.Millisecond, FirstSuccess, "clients")
		add(tc.loaded, contract.EventDatasetLoaded, tc.object)
		add(7*time.Second, Recovered, "clients")
		var lines []string
		for _, p := range Phases(status, &impact.Impact{Recovered: true, RecoveryTime: durations.Exactly(7 * time.Second)}) {
			lines = append(lines, fmt.Sprintf("%s %s %s", p.Name, time.Duration(p.Took.Value), p.Source))
		}
		if len(lines) < len(tc.want) || !slices.Equal(lines[:len(tc.want)], tc.want) {
			t.Errorf("%s: phases\n%q, want\n%q", tc.name, lines, tc.want)
		}
	}
}

// Each event is as uncertain as its source.
func TestMilestonesAreAsUncertainAsTheirSource(t *testing.T) {
	const ms = time.Millisecond
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	between := func(value, atLeast time.Duration) durations.Bounded {
		return durations.Bounded{Value: value, AtLeast: atLeast, AtMost: value}
	}
	measured := &impact.Impact{
		Injection:    durations.Milestone{Sooner: ms, Later: 40 * ms},
		TimeToImpact: durations.Bounded{Value: 60 * ms, AtLeast: 10 * ms, AtMost: 64 * ms},
		OutageEnd:    between(2500*ms, 2490*ms), ProbeOutageEnd: between(2400*ms, 2395*ms),
	}
	for _, tc := range []struct {
		event string
		at    time.Duration
		want  durations.Milestone
	}{
		{FirstError, 60 * ms, durations.Milestone{Sooner: 10 * ms, Later: 3 * ms}},
		{Deleted, 300 * ms, durations.Milestone{Sooner: 300 * ms}}, // not before the injection
		{contract.EventAttached, 1800 * ms, durations.Milestone{Sooner: time.Second}},
		{Started, 2300 * ms, durations.Milestone{Sooner: 300 * ms}},
		{contract.EventPromoted, 2350 * ms, durations.Milestone{Sooner: 350 * ms}},
		{durations.Serves, 2400 * ms, durations.Milestone{Sooner: 5 * ms}},
		{FirstSuccess, 2500 * ms, durations.Milestone{Sooner: 10 * ms}},
		{Reverted, 2600 * ms, durations.Milestone{}},
	} {
		tc.want.Name, tc.want.At = tc.event, tc.at
		if got := milestoneOf(&v1alpha1.TimelineEvent{Event: tc.event, At: metav1.NewMicroTime(t0.Add(tc.at))}, tc.at,
			measured); got != tc.want {
			t.Errorf("%+v, want %+v", got, tc.want)
		}
	}
}
