package fault

import (
	"cmp"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// markedLate is how late a mark may be for the pods of before to count as those that were hit.
const markedLate = 2 * time.Second

// maxJournal is how many pods all snapshots of a journal have together.
const maxJournal = 4096

// journal is how the pods of a target changed while a fault of type External waits: its instant is known only afterwards. It is lost with the process.
type journal struct {
	mu        sync.Mutex
	snapshots []snapshot
}

// snapshot is the pods from an instant on.
type snapshot struct {
	at   time.Time
	pods []corev1.Pod // without most of their specs
}

// journal adds a snapshot if a pod has changed.
func (r *Reconciler) journal(s *scope) {
	pods, watched := s.deps.Watched.Pods()
	if !watched { // a target of addresses has no known pods
		return
	}
	now := snapshot{at: r.Clock.Now()}
	for i := range pods {
		now.pods = append(now.pods, slim(&pods[i], s.deps.Container(&pods[i]).Name))
	}
	slices.SortFunc(now.pods, func(a, b corev1.Pod) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID)) })
	held, _ := r.journals.LoadOrStore(s.fault.UID, &journal{})
	held.(*journal).add(now)
}

// slim is what a timeline needs of a pod. Only the Redis container remains.
func slim(pod *corev1.Pod, container string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName, Containers: []corev1.Container{{Name: container}}},
		Status: corev1.PodStatus{Conditions: pod.Status.Conditions, ContainerStatuses: slices.DeleteFunc(slices.Clone(pod.Status.ContainerStatuses),
			func(c corev1.ContainerStatus) bool { return c.Name != container })},
	}
}

func (j *journal) add(now snapshot) {
	j.mu.Lock()
	defer j.mu.Unlock()
	same := func(a, b corev1.Pod) bool { return a.UID == b.UID && a.ResourceVersion == b.ResourceVersion }
	if n := len(j.snapshots); n > 0 && slices.EqualFunc(j.snapshots[n-1].pods, now.pods, same) {
		return
	}
	j.snapshots = append(j.snapshots, now)
	j.snapshots = j.snapshots[max(0, len(j.snapshots)-max(2, maxJournal/max(1, len(now.pods)))):]
}

// since returns the pods at an instant, or the first that are known, and all later snapshots.
func (j *journal) since(at time.Time) (then []corev1.Pod, later []snapshot) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, one := range j.snapshots {
		if i == 0 || !one.at.After(at) {
			then, later = one.pods, j.snapshots[i+1:]
		}
	}
	return then, slices.Clone(later)
}

// replay sets the pods just before t0 as targets, and adds what has happened to them since then to the timeline.
func (r *Reconciler) replay(s *scope) {
	held, known := r.journals.Load(s.fault.UID)
	if !known {
		return
	}
	status := &s.fault.Status
	then, later := held.(*journal).since(status.InjectedAt.Add(-markedLate))
	status.Targets = nil
	for i := range then[:min(len(then), 1000)] {
		pod := &then[i]
		t := v1alpha1.FaultTarget{Pod: pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName, Container: pod.Spec.Containers[0].Name, RevertedAt: status.RevertedAt}
		for _, c := range pod.Status.ContainerStatuses {
			t.RestartCount = c.RestartCount
		}
		status.Targets = append(status.Targets, t)
	}
	for _, one := range later {
		addPodEvents(status, one.pods, one.at)
	}
}
