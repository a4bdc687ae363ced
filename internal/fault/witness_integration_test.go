//go:build integration

package fault

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/testing/redistest"
	"github.com/redquake/redquake/internal/topology"
)

// A primary dies for good: the sentinels' part of the recovery is told, in order and with the instants at which it happened.
func TestWitnessSeesAFailover(t *testing.T) {
	t.Parallel() // most of it waits
	s := newStage(t)
	set := redistest.NewSentinel(t, 2, redistest.SentinelOptions{})
	for i, server := range set.Servers() {
		s.host(fmt.Sprintf("redis-%d", i), server, nil)
	}
	around := s.around()
	around.Sentinels, around.SentinelLogin = set.SentinelAddresses(), topology.Login{Timeout: time.Second}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w, err := Watch(ctx, around, byPods(map[string]string{"app": "redis"}))
	if err != nil {
		t.Fatal(err)
	}
	w.AwaitLook()
	time.Sleep(300 * time.Millisecond) // the subscriptions stand
	killed := time.Now()
	set.CurrentPrimary().Kill()
	want := []string{EventSubjectivelyDown, EventObjectivelyDown, EventElected, EventPromoted, EventSwitched}
	redistest.Wait(t, "the failover was seen", func() error {
		var events []string
		for _, seen := range w.Seen() {
			events = append(events, seen.Event)
		}
		for _, event := range want {
			if !slices.Contains(events, event) {
				return fmt.Errorf("saw %v, want %v", events, want)
			}
		}
		return nil
	})
	last := killed
	for _, event := range want {
		i := slices.IndexFunc(w.Seen(), func(seen Sighting) bool {
			return seen.Event == event && (seen.Object == "sentinels") == (event != EventPromoted)
		})
		if i < 0 {
			t.Fatalf("%s is not theirs who should tell it: %+v", event, w.Seen())
		}
		seen := w.Seen()[i]
		early := time.Duration(0)
		if event == EventSwitched { // the one before was found by looking, up to a look later than it was
			early = lookEvery + lookWithin
		}
		if seen.At.Before(last.Add(-early)) {
			t.Errorf("%s at %s, before what came before it at %s", event, seen.At, last)
		}
		last = seen.At
		t.Logf("%8s %s %s", seen.At.Sub(killed).Round(time.Millisecond), seen.Event, seen.Message)
	}
}
