//go:build integration

package fault

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/target/sentinel"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// A primary is killed and does not return: the witness reports the failover by the sentinels. TestWitnessOrder covers
// order and instants.
func TestWitnessSeesAFailover(t *testing.T) { redistest.Each(t, testWitnessSeesAFailover) }

func testWitnessSeesAFailover(t *testing.T) {
	t.Parallel()
	s := faulttest.NewStage(t, nil, guard.Choose)
	set := redistest.NewSentinel(t, 2, redistest.SentinelOptions{})
	for i, server := range set.Servers() {
		s.Host(fmt.Sprintf("redis-%d", i), server, nil)
	}
	deps := s.Deps()
	deps.Sentinels = sentinel.Set{
		Addresses: set.SentinelAddresses(),
		Login:     redis.Login{Timeout: faulttest.Patient},
		Servers:   deps.Servers,
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	redis := faulttest.On(deps, faulttest.ByPods(map[string]string{"app": "redis"})).Redis
	w := Watch(ctx, redis, redis.AllPods)
	w.AwaitLook()
	for _, sentinel := range set.Sentinels {
		await.Until(t, "the subscription stands", func() error {
			if clients := fmt.Sprint(sentinel.Do("CLIENT", "LIST")); !strings.Contains(clients, " psub=1 ") {
				return fmt.Errorf("not at %s: %s", sentinel.Address(), clients)
			}
			return nil
		})
	}
	killed := time.Now()
	set.CurrentPrimary().Kill()
	want := []string{
		contract.EventElected, contract.EventObjectivelyDown, contract.EventPromoted,
		contract.EventSubjectivelyDown, contract.EventSwitched,
	}
	await.Until(t, "the failover was seen", func() error {
		var events []string
		for _, seen := range w.Seen() {
			if slices.Contains(want, seen.Event) {
				events = append(events, seen.Event)
			}
		}
		if slices.Sort(events); !slices.Equal(events, want) {
			return fmt.Errorf("saw %v, want %v", events, want)
		}
		return nil
	})
	for _, seen := range w.Seen() {
		if slices.Contains(want, seen.Event) &&
			(seen.At.Before(killed) || (seen.Object == "sentinels") != (seen.Event != contract.EventPromoted)) {
			t.Errorf("%s after the kill: %+v", seen.At.Sub(killed), seen)
		}
		t.Logf("%8s %s %s", seen.At.Sub(killed).Round(time.Millisecond), seen.Event, seen.Message)
	}
}

// A primary restarts and reads its data for seconds: the witness sees that it answers LOADING before it sees that its
// data is there.
func TestWitnessSeesLoading(t *testing.T) { redistest.Each(t, testWitnessSeesLoading) }

func testWitnessSeesLoading(t *testing.T) {
	t.Parallel()
	s := faulttest.NewStage(t, nil, guard.Choose)
	server := redistest.NewServer(t, redistest.Options{})
	s.Host("redis-0", server, nil)
	redis := faulttest.On(s.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis
	await.Until(t, "the process is older than the witness, even if it is too slow for the first look", func() error {
		up, err := strconv.Atoi(server.Info("uptime_in_seconds"))
		return await.That(err == nil && up >= 5, "uptime %d: %v", up, err)
	})
	w := Watch(t.Context(), redis, redis.AllPods)
	w.AwaitLook()
	server.LoadSlowly(2000, 4*time.Second)
	server.Launch()
	await.Until(t, "the server has its data", func() error {
		var events []string
		for _, seen := range w.Seen() {
			events = append(events, seen.Event+" "+seen.Object)
		}
		if want := []string{
			contract.EventLoading + " redis-0",
			contract.EventDatasetLoaded + " redis-0",
		}; !slices.Equal(events, want) {
			return fmt.Errorf("saw %v, want %v", events, want)
		}
		return nil
	})
}
