package timeline

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC)

func after(d time.Duration) time.Time { return t0.Add(d) }

// stamp truncates a time to seconds, as the API server does.
func stamp(d time.Duration) metav1.Time { return metav1.NewTime(after(d).Truncate(time.Second)) }

// hit is a fault that has just been injected into pod redis-0 with UID old.
func hit() *v1alpha1.RedisFaultStatus {
	at := metav1.NewMicroTime(t0)
	return &v1alpha1.RedisFaultStatus{
		InjectedAt: &at, Targets: []v1alpha1.FaultTarget{{Pod: "redis-0", UID: "old", Container: "redis", RestartCount: 1}},
		Timeline: []v1alpha1.TimelineEvent{newEvent(&at, t0, Injected, "redis-0", "PodKill")},
	}
}

func redisPod(name, uid string, change func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), CreationTimestamp: stamp(-time.Hour)},
		Spec:       corev1.PodSpec{NodeName: "node-2"},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "redis", RestartCount: 1}}},
	}
	if change != nil {
		change(&p)
	}
	return p
}

// replacement is a pod created 1 s after t0, started after 2 s, ready after 3 s.
func replacement(name, uid string) corev1.Pod {
	return redisPod(name, uid, func(p *corev1.Pod) {
		p.CreationTimestamp = stamp(time.Second)
		p.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: stamp(2 * time.Second)}
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: stamp(time.Second)},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: stamp(3 * time.Second)},
		}
	})
}

func timelineText(s *v1alpha1.RedisFaultStatus) string {
	var words []string
	for _, e := range s.Timeline {
		words = append(words, e.Event+":"+e.Object)
	}
	return strings.Join(words, " ")
}

func TestPodEvents(t *testing.T) {
	for _, tc := range []struct {
		name  string
		looks [][]corev1.Pod // what was seen 1 s, 2 s, ... after t0
		want  string
	}{
		{"nothing has happened yet", [][]corev1.Pod{{redisPod("redis-0", "old", nil)}}, "Injected:redis-0"},
		{"terminating", [][]corev1.Pod{{redisPod("redis-0", "old", func(p *corev1.Pod) {
			p.DeletionTimestamp = new(
				stamp(0))
		})}}, "Injected:redis-0 PodTerminating:redis-0"},
		{
			"a StatefulSet's replacement has the same name",
			[][]corev1.Pod{
				{redisPod("redis-0", "old", func(p *corev1.Pod) {
					p.DeletionTimestamp = new(
						stamp(0))
				})}, {}, {replacement("redis-0", "new")}, {replacement("redis-0", "new")},
			},
			"Injected:redis-0 PodTerminating:redis-0 ReplacementCreated:redis-0 Scheduled:redis-0 PodDeleted:redis-0 " +
				"ContainerStarted:redis-0 Ready:redis-0",
		},
		{
			"a Deployment's replacement has another name",
			[][]corev1.Pod{
				{redisPod("redis-0", "old", nil)}, {replacement("redis-x", "new")},
			},
			"Injected:redis-0 ReplacementCreated:redis-x Scheduled:redis-x PodDeleted:redis-0 ContainerStarted:redis-x Ready:redis-x",
		},
		{"a container that was restarted in place", [][]corev1.Pod{{redisPod("redis-0", "old", func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0] = corev1.ContainerStatus{
				Name:         "redis",
				RestartCount: 2,
				Ready:        true,
				State:        corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: stamp(time.Second)}},
				LastTerminationState: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 139},
				},
			}
		})}}, "Injected:redis-0 ContainerRestarted:redis-0 ContainerStarted:redis-0 Ready:redis-0"},
		{"another container's restart is not the fault's", [][]corev1.Pod{{redisPod("redis-0", "old", func(p *corev1.Pod) {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
				Name:         "exporter",
				RestartCount: 9,
			})
		})}}, "Injected:redis-0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := hit()
			for i, pods := range tc.looks {
				AddPods(s, pods, after(time.Duration(i+1)*time.Second))
			}
			if got := timelineText(s); got != tc.want {
				t.Errorf("timeline\n%s, want\n%s", got, tc.want)
			}
			if !slices.IsSortedFunc(s.Timeline, func(a, b v1alpha1.TimelineEvent) int { return a.At.Compare(b.At.Time) }) {
				t.Error("not in order")
			}
			again := s.DeepCopy()
			AddPods(again, tc.looks[len(tc.looks)-1], after(time.Minute))
			if !equality.Semantic.DeepEqual(s, again) {
				t.Errorf("reading the same pods again changed it: %s", timelineText(again))
			}
		})
	}
}

// Kubernetes stores whole seconds: an observation within that second is exact, otherwise the end of the second is used.
func TestEventTime(t *testing.T) {
	second := metav1.NewTime(t0.Truncate(time.Second))
	for _, tc := range []struct {
		name       string
		seen, want time.Duration // from the second's begin
		stamp      metav1.Time
	}{
		{"seen in that second", 300 * time.Millisecond, 300 * time.Millisecond, second},
		{"seen at its very end", 999 * time.Millisecond, 999 * time.Millisecond, second},
		{"seen much later", time.Minute, 999 * time.Millisecond, second},
		{"no timestamp", time.Minute, time.Minute, metav1.Time{}},
	} {
		if got := Estimate(second.Add(tc.seen), tc.stamp).Sub(second.Time); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestClientEvents(t *testing.T) {
	s := hit()
	m := &impact.Impact{
		TimeToImpact:        durations.Exactly(2 * time.Millisecond),
		OutageEnd:           durations.Exactly(900 * time.Millisecond),
		Outages:             impact.Outages{Load: durations.Exactly(898 * time.Millisecond)},
		Recovered:           true,
		RecoveryTime:        durations.Exactly(1200 * time.Millisecond),
		RecoveredThroughput: 1,
	}
	AddClients(s, m)
	AddClients(s, m)
	if got := timelineText(s); got != "Injected:redis-0 FirstError:clients FirstSuccess:clients Recovered:clients" {
		t.Errorf("timeline %s", got)
	}
	if got := s.Timeline[3].Offset; got.Duration != 1200*time.Millisecond {
		t.Errorf("recovered at %s", got)
	}
	s = hit()
	AddClients(s, &impact.Impact{
		TimeToImpact: durations.Exactly(-1),
		OutageEnd:    durations.Exactly(-1),
		RecoveryTime: durations.Exactly(-1),
	})
	if got := timelineText(s); got != "Injected:redis-0" {
		t.Errorf("timeline of a fault without any impact: %s", got)
	}
}

// With many targets, events of replacements leave room for those that the figures depend on.
func TestTimelineIsBounded(t *testing.T) {
	s := hit()
	for _, tc := range []struct {
		event string
		room  int
	}{{Ready, 128}, {Injected, 192}, {Deleted, 256}} {
		for i := range 400 {
			Append(s, after(time.Duration(i)), tc.event, strings.Repeat("x", i+1), strings.Repeat("y", 600))
		}
		if len(s.Timeline) != tc.room || len(s.Timeline[len(s.Timeline)-1].Message) > 512 {
			t.Errorf("%s: %d events, message of %d bytes; want %d", tc.event, len(s.Timeline),
				len(s.Timeline[len(s.Timeline)-1].Message), tc.room)
		}
	}
}
