package faultrun

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
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
			Name:              pod.Name,
			Namespace:         pod.Namespace,
			UID:               pod.UID,
			ResourceVersion:   pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp,
			DeletionTimestamp: pod.DeletionTimestamp,
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
	n := len(j.snapshots)
	if n > 0 && slices.EqualFunc(j.snapshots[n-1].Pods, now.Pods, same) {
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

// checkedFor is how long a check before the injection counts.
const checkedFor = 5 * time.Second

// check is one evaluation of a fault's stop conditions before its injection. It runs outside of the
// reconciles: a Prometheus may take long to answer.
type check struct {
	term   *Term // whose clients it uses
	cancel context.CancelFunc
	done   chan struct{}
	at     time.Time        // set before done is closed, as is found
	found  *v1alpha1.Breach // nil = none
}

func (t *Term) beginCheck(
	of client.ObjectKey, conditions *Stops, lately func() *impact.Live,
) *check {
	// not that of the reconcile, which ends before
	ctx, cancel := context.WithTimeout(context.Background(), SlowestQuery)
	c := &check{
		term:   t,
		cancel: cancel,
		done:   make(chan struct{}),
	}
	t.start(func() {
		defer cancel()
		c.found = conditions.check(ctx, lately)
		c.at = t.clock.Now()
		if c.found != nil {
			c.found.At = metav1.NewMicroTime(c.at)
		}
		close(c.done)
		t.Notify(of)
	})
	return c
}

func (c *check) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
