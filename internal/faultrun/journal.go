package faultrun

import (
	"cmp"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxJournal is how many pods all snapshots of a journal have together.
const maxJournal = 4096

// Journal is how the pods of a target changed while a fault of type External waits: its instant is
// known only afterwards. It is lost with the process.
type Journal struct {
	mu        sync.Mutex
	snapshots []Snapshot
}

// Snapshot is the pods from an instant on.
type Snapshot struct {
	At   time.Time
	Pods []corev1.Pod // without most of their specs
}

// NewSnapshot is what a journal needs of pods. container names the Redis container of a pod.
func NewSnapshot(at time.Time, pods []corev1.Pod, container func(*corev1.Pod) string) Snapshot {
	now := Snapshot{At: at}
	for i := range pods {
		now.Pods = append(now.Pods, slim(&pods[i], container(&pods[i])))
	}
	slices.SortFunc(now.Pods, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.UID, b.UID))
	})
	return now
}

// slim is what a timeline needs of a pod. Only the Redis container remains.
func slim(pod *corev1.Pod, container string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{
			NodeName:   pod.Spec.NodeName,
			Containers: []corev1.Container{{Name: container}},
		},
		Status: corev1.PodStatus{
			Conditions: pod.Status.Conditions,
			ContainerStatuses: slices.DeleteFunc(slices.Clone(pod.Status.ContainerStatuses),
				func(c corev1.ContainerStatus) bool { return c.Name != container }),
		},
	}
}

// add adds a snapshot if a pod has changed.
func (j *Journal) add(now Snapshot) {
	j.mu.Lock()
	defer j.mu.Unlock()
	same := func(a, b corev1.Pod) bool {
		return a.UID == b.UID && a.ResourceVersion == b.ResourceVersion
	}
	if n := len(j.snapshots); n > 0 && slices.EqualFunc(j.snapshots[n-1].Pods, now.Pods, same) {
		return
	}
	j.snapshots = append(j.snapshots, now)
	j.snapshots = j.snapshots[max(0, len(j.snapshots)-max(2, maxJournal/max(1, len(now.Pods)))):]
}

// Since returns the pods at an instant, or the first that are known, and all later snapshots.
func (j *Journal) Since(at time.Time) (then []corev1.Pod, later []Snapshot) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, one := range j.snapshots {
		if i == 0 || !one.At.After(at) {
			then, later = one.Pods, j.snapshots[i+1:]
		}
	}
	return then, slices.Clone(later)
}
