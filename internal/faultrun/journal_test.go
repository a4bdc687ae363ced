package faultrun

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func after(d time.Duration) time.Time {
	return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(d)
}

func redisPod(name, uid string, change func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}, Spec: corev1.PodSpec{NodeName: "node-2"},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "redis", RestartCount: 1}}},
	}
	if change != nil {
		change(&p)
	}
	return p
}

// seenAt is a snapshot of pods, each given as NAME/VERSION.
func seenAt(d time.Duration, pods ...string) Snapshot {
	s := Snapshot{At: after(d)}
	for _, pod := range pods {
		name, version, _ := strings.Cut(pod, "/")
		p := redisPod(name, name, nil)
		p.ResourceVersion = version
		s.Pods = append(s.Pods, p)
	}
	return s
}

func namesOf(pods []corev1.Pod) string {
	var names []string
	for _, p := range pods {
		names = append(names, p.Name+"/"+p.ResourceVersion)
	}
	return strings.Join(names, " ")
}

func TestJournal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		snapshots []Snapshot
		at        time.Duration
		then      string
		later     int
	}{
		"nothing was seen": {at: time.Second},
		"before the first": {
			snapshots: []Snapshot{seenAt(time.Second, "a/1"), seenAt(2*time.Second, "a/2")},
			then:      "a/1",
			later:     1,
		},
		"at the instant of a change": {
			snapshots: []Snapshot{seenAt(0, "a/1"), seenAt(time.Second, "a/2"), seenAt(2*time.Second, "a/3")},
			at:        time.Second,
			then:      "a/2",
			later:     1,
		},
		"just before a change": {
			snapshots: []Snapshot{seenAt(0, "a/1"), seenAt(time.Second, "a/2")},
			at:        time.Second - 1,
			then:      "a/1",
			later:     1,
		},
		"after the last": {
			snapshots: []Snapshot{seenAt(0, "a/1"), seenAt(time.Second, "a/2")},
			at:        time.Hour,
			then:      "a/2",
		},
		"the same twice": {
			snapshots: []Snapshot{seenAt(0, "a/1", "b/1"), seenAt(time.Second, "a/1", "b/1"), seenAt(2*time.Second, "a/1")},
			at:        time.Second,
			then:      "a/1 b/1",
			later:     1,
		},
		"all pods are gone": {
			snapshots: []Snapshot{seenAt(0, "a/1"), seenAt(time.Second)},
			at:        time.Second,
			then:      "",
		},
		"none at first": {
			snapshots: []Snapshot{seenAt(0), seenAt(time.Second, "a/1")},
			at:        0,
			then:      "",
			later:     1,
		},
		"a clock that was set back": {
			snapshots: []Snapshot{seenAt(5*time.Second, "a/1"), seenAt(time.Second, "a/2"), seenAt(2*time.Second, "a/3")},
			at:        1500 * time.Millisecond,
			then:      "a/2",
			later:     1,
		},
		"another pod of the same name": {
			snapshots: []Snapshot{
				seenAt(0, "a/1"),
				{
					At:   after(time.Second),
					Pods: []corev1.Pod{redisPod("a", "other", func(p *corev1.Pod) { p.ResourceVersion = "1" })},
				},
			},
			at:    0,
			then:  "a/1",
			later: 1,
		},
	} {
		j := &Journal{}
		for _, s := range test.snapshots {
			j.add(s)
		}
		then, later := j.Since(after(test.at))
		if got := namesOf(then); got != test.then || len(later) != test.later {
			t.Errorf("%s: %q and %d later, want %q and %d", name, got, len(later), test.then, test.later)
		}
	}
}

// A journal that waits for a day, of any number of pods, keeps the latest, and at least what was before a change.
func TestJournalIsBounded(t *testing.T) {
	t.Parallel()
	for pods, keeps := range map[int]int{0: 1, 1: maxJournal, 100: 40, maxJournal: 2, 3 * maxJournal: 2} {
		j := &Journal{}
		for i := range maxJournal + 10 {
			if pods > 100 && i == 5 {
				break
			}
			s := Snapshot{At: after(time.Duration(i) * time.Second), Pods: make([]corev1.Pod, pods)}
			for k := range s.Pods {
				s.Pods[k].UID, s.Pods[k].ResourceVersion = types.UID(fmt.Sprint(k)), fmt.Sprint(i)
			}
			j.add(s)
		}
		if len(j.snapshots) != keeps {
			t.Errorf("%d snapshots of %d pods, want %d", len(j.snapshots), pods, keeps)
		}
	}
}

// What a journal keeps of a pod is enough for a timeline, and little: a pod may be large, or have another container
// than expected.
func TestSlim(t *testing.T) {
	t.Parallel()
	whole := redisPod("a", "u", func(p *corev1.Pod) {
		p.Annotations = map[string]string{"large": strings.Repeat("x", 256<<10)}
		p.Spec.Containers = make([]corev1.Container, 50)
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "sidecar"})
	})
	kept := slim(&whole, "redis")
	if kept.Annotations != nil || len(kept.Spec.Containers) != 1 || len(kept.Status.ContainerStatuses) != 1 ||
		kept.UID != "u" || kept.Spec.NodeName != "node-2" {
		t.Errorf("%+v", kept)
	}
	if none := slim(&corev1.Pod{}, ""); len(none.Spec.Containers) != 1 || len(none.Status.ContainerStatuses) != 0 {
		t.Errorf("%+v", none)
	}
	if len(whole.Status.ContainerStatuses) != 2 {
		t.Error("the pod itself was changed")
	}
}
