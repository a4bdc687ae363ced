package fault

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// listening are scripted servers beside sentinels that publish at given instants after the subscription.
type listening struct {
	*faulttest.Scripted
	publish map[string][]published // by sentinel
}

type published struct {
	after            time.Duration
	channel, payload string
}

func (l listening) Listen(
	ctx context.Context, address string, _ redis.Login, _ string, heard func(at time.Time, channel, payload string),
) {
	began := time.Now()
	for _, p := range l.publish[address] {
		select {
		case <-time.After(time.Until(began.Add(p.after))):
			heard(time.Now(), p.channel, p.payload)
		case <-ctx.Done():
			return
		}
	}
}

// roles are the servers of a replication as INFO shows them, by address; a role of "" does not answer.
type roles struct {
	mu    sync.Mutex
	of    map[string]topology.Role
	looks map[string][]time.Duration // when each was asked, since the start
	began time.Time
}

func (r *roles) info(address string, _ ...any) (any, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looks[address] = append(r.looks[address], time.Since(r.began))
	switch r.of[address] {
	case topology.Primary:
		return "run_id:" + address + "\r\nrole:master\r\n", nil
	case topology.Replica:
		return "run_id:" + address + "\r\nrole:slave\r\n", nil
	}
	return nil, faulttest.ErrSilent
}

func (r *roles) change(address string, to topology.Role) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of[address] = to
}

// watched is a witness of a primary at 10.0.0.1 and a replica at 10.0.0.2. It ends with stop.
func watched(
	t *testing.T, takes func(address string) time.Duration, publish map[string][]published,
) (w *Witness, servers *roles, stop func()) {
	t.Helper()
	world := faulttest.NewWorld(t)
	world.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
	world.Pod("redis-1", "u1", "10.0.0.2", topology.Replica, nil)
	servers = &roles{
		of:    map[string]topology.Role{"10.0.0.1:6379": topology.Primary, "10.0.0.2:6379": topology.Replica},
		looks: map[string][]time.Duration{},
		began: time.Now(),
	}
	world.Servers.Answer, world.Servers.Takes = servers.info, takes
	deps := world.Deps()
	deps.Servers = listening{world.Servers, publish}
	for sentinel := range publish {
		deps.Sentinels.Addresses = append(deps.Sentinels.Addresses, sentinel)
	}
	ctx, cancel := context.WithCancel(t.Context())
	redis := faulttest.On(deps, faulttest.ByPods(map[string]string{"app": "redis"})).Redis
	w = Watch(ctx, redis, redis.AllPods)
	return w, servers, func() {
		cancel()
		synctest.Wait()
	}
}

// Ten polls per second, the first one immediately.
func TestWitnessPollInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, servers, stop := watched(t, nil, nil)
		w.AwaitLook()
		if took := time.Since(servers.began); took != 0 {
			t.Errorf("the first poll took %s", took)
		}
		time.Sleep(time.Second - time.Millisecond)
		stop()
		var want []time.Duration
		for i := range 10 {
			want = append(want, time.Duration(i)*pollInterval)
		}
		for _, address := range []string{"10.0.0.1:6379", "10.0.0.2:6379"} {
			if got := servers.looks[address]; !slices.Equal(got, want) {
				t.Errorf("%s was polled after %v, want %v", address, got, want)
			}
		}
	})
}

// A slow server does not delay a poll beyond its timeout, and counts as one that does not answer.
func TestWitnessDoesNotWaitForSlowServers(t *testing.T) {
	for takes, known := range map[time.Duration]bool{
		pollTimeout - time.Millisecond: true,
		pollTimeout + time.Millisecond: false,
		time.Hour:                      false,
	} {
		t.Run(takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, servers, stop := watched(t, func(address string) time.Duration {
					if address == "10.0.0.2:6379" {
						return takes
					}
					return 0
				}, nil)
				w.AwaitLook()
				if waited := time.Since(servers.began); waited != min(takes, pollTimeout) {
					t.Errorf("the first poll took %s, want %s", waited, min(takes, pollTimeout))
				}
				synctest.Wait()
				w.mu.Lock()
				if _, there := w.course.before["redis-1"]; there != known || len(w.course.before) == 0 {
					t.Errorf("events of the first poll: %v, want none", w.course.before)
				}
				w.mu.Unlock()
				stop()
			})
		})
	}
}

// Events that sentinels publish have the time of the message, events that a poll detects the time of the poll; each
// event is reported once, with the first time.
func TestWitnessOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		w, servers, stop := watched(t, nil, map[string][]published{
			"10.0.1.1:26379": {
				{1003 * ms, "+sdown", "master m 10.0.0.1 6379"},
				{1107 * ms, "+odown", "master m 10.0.0.1 6379"},
				{1351 * ms, "+switch-master", "m 10.0.0.1 6379 10.0.0.2 6379"},
			},
			"10.0.1.2:26379": {
				{900 * ms, "+sdown", "slave 10.0.0.3:6379"},
				{1011 * ms, "+sdown", "master m 10.0.0.1 6379"},
				{1102 * ms, "+odown", "master m 10.0.0.1 6379"},
				{1150 * ms, "+elected-leader", "master m 10.0.0.1 6379"},
				{1349 * ms, "+switch-master", "m 10.0.0.1 6379 10.0.0.2 6379"},
			},
		})
		w.AwaitLook()
		time.Sleep(500 * ms)
		servers.change("10.0.0.1:6379", "")
		time.Sleep(720 * ms)
		servers.change("10.0.0.2:6379", topology.Primary) // between two polls
		time.Sleep(2 * time.Second)
		stop()
		var got []string
		for _, seen := range w.Seen() {
			got = append(got, fmt.Sprint(seen.At.Sub(servers.began), " ", seen.Event, " ", seen.Object))
		}
		want := []string{
			"1.003s SubjectivelyDown sentinels", "1.102s ObjectivelyDown sentinels", "1.15s Elected sentinels",
			"1.3s Promoted redis-1", "1.349s Switched sentinels",
		}
		if !slices.Equal(got, want) {
			t.Errorf("seen:\n%q\nwant:\n%q", got, want)
		}
	})
}
