package faultrun

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/testing/reverttest"
)

// A revert is abandoned 40 s after the deletion of the object, or its last step, a step that does not fail after five
// minutes, all of them after half an hour; without a deletion after a day of errors. This process has tried it.
func TestRevertIsAbandoned(t *testing.T) {
	const step = 5 * time.Minute
	for _, tc := range []struct {
		name         string
		deleted      bool
		tried        bool
		attempts     int32
		after        time.Duration
		wantAbandons bool
		underway     bool
		moved        time.Duration
	}{
		{name: "errors for a minute", tried: true, attempts: 60, after: time.Minute},
		{name: "errors for a day", tried: true, attempts: 60, after: lifecycle.RevertLimit + 1, wantAbandons: true},
		{name: "steps for a day, then an error", tried: true, attempts: 1, after: lifecycle.RevertLimit + 1},
		{name: "deleted", deleted: true, tried: true, attempts: 60, after: lifecycle.RevertPatience},
		{
			name:         "deleted, and errors for too long",
			deleted:      true,
			tried:        true,
			attempts:     60,
			after:        lifecycle.RevertPatience + 1,
			wantAbandons: true,
		},
		{
			name:     "deleted, and errors since a step",
			deleted:  true,
			tried:    true,
			attempts: 6,
			after:    10 * time.Minute,
			moved:    10*time.Minute - lifecycle.RevertPatience,
		},
		{
			name: "deleted, and errors for too long since a step", deleted: true, tried: true, attempts: 60,
			after: 10 * time.Minute, moved: 10*time.Minute - lifecycle.RevertPatience - 1, wantAbandons: true,
		},
		{name: "deleted, and a step", deleted: true, tried: true, underway: true, after: step},
		{
			name:         "deleted, and a step for too long",
			deleted:      true,
			tried:        true,
			underway:     true,
			after:        step + 1,
			wantAbandons: true,
		},
		{
			name:     "deleted, and steps",
			deleted:  true,
			tried:    true,
			underway: true,
			after:    lifecycle.DeletedLimit,
			moved:    lifecycle.DeletedLimit - time.Second,
		},
		{
			name: "deleted, and steps for too long", deleted: true, tried: true, underway: true,
			after: lifecycle.DeletedLimit + 1, moved: lifecycle.DeletedLimit, wantAbandons: true,
		},
		{name: "a new process", deleted: true, attempts: 60, after: time.Hour},
	} {
		o := lifecycle.Fault{
			Life: lifecycle.Life{Deleting: tc.deleted},
			Revert: lifecycle.Revert{
				Reverting:   true,
				Step:        step,
				RevertTried: tc.tried,
				RevertSince: time.Unix(0, 0),
			},
		}
		if got := o.Abandons(lifecycle.Pending{
			Attempts: int(tc.attempts),
			Underway: tc.underway,
			Moved:    time.Unix(0, 0).Add(tc.moved),
		}, time.Unix(0, 0).Add(tc.after)); got != tc.wantAbandons {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		injector := &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Refusal}}
		v := adopted(t.Context(), t, reverttest.ActiveFault(t, "redis-0", "redis-1"), nil, injector)
		v.Ask()
		time.Sleep(time.Second)
		v.Abandon(func(t *v1alpha1.FaultTarget) bool { return t.Pod == "redis-0" }, injector.ManualRevertCommand)
		if p, tried := v.Progress(); !tried || !p.targets[0].RevertAbandoned ||
			p.targets[0].ManualRevertCommand != "do this" || p.targets[1].RevertAbandoned || p.revertedAt != nil {
			t.Errorf("%+v", p)
		}
		v.Abandon(func(*v1alpha1.FaultTarget) bool { return true }, injector.ManualRevertCommand)
		if p, _ := v.Progress(); p.revertedAt == nil {
			t.Errorf("%+v", p)
		}
		time.Sleep(time.Minute)
		before := len(injector.Calls())
		time.Sleep(time.Hour)
		if n := len(injector.Calls()); n != before {
			t.Errorf("%d calls after the revert was abandoned", n-before)
		}
	})
}
