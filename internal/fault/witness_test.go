package fault

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

type published struct {
	after            time.Duration
	channel, payload string
}

// looks are when each server was asked, since the start.
type looks struct {
	*faulttest.Servers
	mu    sync.Mutex
	at    map[string][]time.Duration
	began time.Time
}

// note takes down that a server is asked, and leaves the reply to it.
func (l *looks) note(address string, _ []string) any {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at[address] = append(l.at[address], time.Since(l.began))
	return nil
}

// watched is a witness of a primary at 10.0.0.1 and a replica at 10.0.0.2, whose replies take so long, beside sentinels
// that publish at given instants after the start. It ends with stop.
func watched(
	t *testing.T, takes time.Duration, publish map[string][]published,
) (w *Witness, servers *looks, stop func()) {
	t.Helper()
	world := faulttest.NewWorld(t)
	world.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
	world.Pod("redis-1", "u1", "10.0.0.2", topology.Replica, nil)
	servers = &looks{Servers: world.Servers, at: map[string][]time.Duration{}, began: time.Now()}
	servers.Script("INFO", servers.note)
	servers.At("10.0.0.2:6379").SetCost(takes)
	deps := world.Deps()
	deps.Servers = world.Servers
	for address, all := range publish {
		deps.Sentinels.Addresses = append(deps.Sentinels.Addresses, address)
		sentinel := servers.Start(address, memredis.State{Mode: "sentinel"})
		for _, p := range all {
			time.AfterFunc(p.after, func() { sentinel.Publish(p.channel, p.payload) })
		}
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
		w, servers, stop := watched(t, 0, nil)
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
			if got := servers.at[address]; !slices.Equal(got, want) {
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
				w, servers, stop := watched(t, takes, nil)
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
		w, servers, stop := watched(t, 0, map[string][]published{
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
		servers.Kill("10.0.0.1:6379")
		time.Sleep(720 * ms)
		servers.Change("10.0.0.2:6379", func(s *memredis.State) { s.Primary = "" }) // between two polls
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
