package fault

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
)

// pollInterval is how often a witness polls.
const pollInterval = 100 * time.Millisecond

// pollTimeout limits one poll: a slower server counts as not answering.
const pollTimeout = 250 * time.Millisecond

// SeenWithin is by how much earlier than its sighting a change of a server can have been.
const SeenWithin = pollInterval + pollTimeout

// Witness polls all servers of a target ten times a second and subscribes to its sentinels, from
// just before a fault on. Its sightings explain a recovery and are no measurement of it: they are
// lost if the operator restarts before they are stored.
type Witness struct {
	redis target.Redis
	pods  ListPods
	ready chan struct{} // closed after the first poll

	mu     sync.Mutex
	course *course
	seen   []contract.Sighting
}

// ListPods lists the pods of a target. A witness calls it ten times a second.
type ListPods func(ctx context.Context) ([]corev1.Pod, error)

// Watch polls until ctx is done.
func Watch(ctx context.Context, redis target.Redis, pods ListPods) *Witness {
	w := &Witness{
		redis:  redis,
		pods:   pods,
		ready:  make(chan struct{}),
		course: newCourse(),
	}
	go w.poll(ctx)
	if listener, ok := redis.Servers.(topology.Listener); ok {
		for _, sentinel := range redis.Sentinels.Addresses {
			go listener.Listen(ctx, sentinel, redis.Sentinels.Login, "[+]*",
				func(at time.Time, channel, payload string) {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.seen = append(w.seen, w.course.notePublished(at, sentinel, channel, payload)...)
				})
		}
	}
	return w
}

// AwaitLook waits for the first poll, but not for longer than one may take: changes are reported
// relative to it.
func (w *Witness) AwaitLook() {
	select {
	case <-w.ready:
	case <-time.After(pollTimeout):
	}
}

// Seen returns all sightings so far.
func (w *Witness) Seen() []contract.Sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]contract.Sighting(nil), w.seen...)
}

func (w *Witness) poll(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for first := true; ctx.Err() == nil; first = false {
		if now, err := w.ask(ctx); err == nil {
			w.mu.Lock()
			w.seen = append(w.seen, w.course.note(time.Now(), now)...)
			w.mu.Unlock()
		}
		if first {
			close(w.ready)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// ask polls all pods that have an address.
func (w *Witness) ask(ctx context.Context) (map[string]observed, error) {
	pods, err := w.pods(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	now := map[string]observed{}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for i := range pods {
		pod := &pods[i]
		if pod.Status.PodIP == "" || pod.DeletionTimestamp != nil ||
			pod.Labels[v1alpha1.LabelLoadTest] != "" {
			continue
		}
		asking.Go(func() {
			if o, ok := w.askOne(ctx, w.redis.Address(pod)); ok {
				mu.Lock()
				defer mu.Unlock()
				now[pod.Name] = o
			}
		})
	}
	asking.Wait()
	return now, nil
}

func (w *Witness) askOne(ctx context.Context, address string) (observed, bool) {
	info, err := w.redis.Info(ctx, address)
	if err != nil {
		return observed{}, false
	}
	o := observedFrom(info)
	if info.Mode() == "cluster" {
		info, err := w.redis.ClusterInfo(ctx, address)
		if err == nil {
			o.cluster = clusterStateFrom(info)
		}
	}
	return o, o.role != topology.Sentinel
}
