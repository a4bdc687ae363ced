package notify

import (
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

const (
	pass = v1alpha1.VerdictPass
	fail = v1alpha1.VerdictFail
)

// A state is notified of if it differs from that of the last notification, and again with growing waits until it is
// accepted.
func TestDue(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, c := range map[string]struct {
		now   State
		last  *State
		tried *Attempt
		want  time.Time
	}{
		"first":        {State{"b", pass, false}, nil, nil, now},
		"same":         {State{"b", pass, false}, &State{"a", pass, false}, nil, time.Time{}},
		"verdict":      {State{"b", fail, false}, &State{"a", pass, false}, nil, now},
		"not complete": {State{"b", "", false}, &State{"a", pass, false}, nil, now},
		"regressed":    {State{"b", pass, true}, &State{"a", pass, false}, nil, now},
		"recovered":    {State{"b", pass, false}, &State{"a", pass, true}, nil, now},
		"once in vain": {
			State{"b", fail, false},
			nil,
			&Attempt{"b", 1, ago(4 * time.Second)},
			now.Add(6 * time.Second),
		},
		"four times":         {State{"b", fail, false}, nil, &Attempt{"b", 4, now}, now.Add(80 * time.Second)},
		"often":              {State{"b", fail, false}, nil, &Attempt{"b", 17, now}, now.Add(10 * time.Minute)},
		"given up":           {State{"b", fail, false}, nil, &Attempt{"b", MostAttempts, ago(time.Hour)}, time.Time{}},
		"another run":        {State{"c", fail, false}, nil, &Attempt{"b", MostAttempts, ago(time.Hour)}, now},
		"reversed meanwhile": {State{"c", pass, false}, &State{"a", pass, false}, &Attempt{"b", 3, now}, time.Time{}},
	} {
		if got := Due(c.now, c.last, c.tried, now); !got.Equal(c.want) {
			t.Errorf("%s: due at %s, want %s", name, got, c.want)
		}
	}
	total := time.Duration(0)
	for n := 1; n < MostAttempts; n++ {
		total += WaitAfter(n)
	}
	if total < 100*time.Minute || total > 150*time.Minute {
		t.Errorf("all attempts take %s, want about two hours", total)
	}
}

// While it is unknown whether something has regressed, that is as in the last notification.
func TestStateOf(t *testing.T) {
	t.Parallel()
	history := []v1alpha1.ScheduledRun{{Name: "a", Verdict: pass}, {Name: "b", Verdict: fail}}
	if _, any := StateOf(nil, new(true), nil); any {
		t.Error("there is a state before the first run")
	}
	for name, c := range map[string]struct {
		regressed *bool
		last      *State
		want      bool
	}{
		"known": {new(true), &State{}, true}, "over": {new(false), &State{Regressed: true}, false},
		"unknown": {nil, &State{Regressed: true}, true}, "unknown at first": {nil, nil, false},
	} {
		if got, any := StateOf(history, c.regressed, c.last); !any || got != (State{"b", fail, c.want}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A message says what has changed, and what was before.
func TestMessage(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		last *State
		now  State
	}{
		"First: shop/nightly: the verdict of run b is Pass. This is the first notification; the next one follows when that " +
			"changes.": {nil, State{"b", pass, false}},
		"Verdict: shop/nightly: the verdict of run b is Fail, after " +
			"Pass.": {&State{"a", pass, false}, State{"b", fail, false}},
		"Verdict: shop/nightly: run b could not complete, after " +
			"Pass.": {&State{"a", pass, false}, State{"b", "", false}},
		"Verdict: shop/nightly: the verdict of run b is Pass, after " +
			"None.": {&State{"a", "", false}, State{"b", pass, false}},
		"Regressed: shop/nightly has regressed: the verdict of run b is " +
			"Pass.": {&State{"a", pass, false}, State{"b", pass, true}},
		"Recovered: shop/nightly has recovered: the verdict of run b is Pass, after " +
			"Fail.": {&State{"a", fail, true}, State{"b", pass, false}},
	} {
		m := NewMessage("shop", "nightly", c.last, c.now, "", "")
		if got := m.Change + ": " + m.Text; got != want+"\nkubectl -n shop describe rexp b" {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
