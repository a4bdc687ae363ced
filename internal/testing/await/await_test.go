package await

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// ended is a test that records how it was ended.
type ended struct {
	testing.TB
	because string
}

func (*ended) Helper() {}

func (e *ended) Fatalf(format string, args ...any) {
	e.because = fmt.Sprintf(format, args...)
	panic(e)
}

// ends returns why a test that calls f ends; "" if it does not.
func ends(f func(t testing.TB)) string {
	e := &ended{}
	func() {
		defer func() {
			if r := recover(); r != nil && r != any(e) {
				panic(r)
			}
		}()
		f(e)
	}()
	return e.because
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		after := func(d time.Duration) func() error {
			return func() error { return That(time.Since(began) >= d, "%s have passed", time.Since(began)) }
		}
		if got := ends(func(t testing.TB) { Until(t, "the minute", after(time.Minute)) }); got != "" ||
			time.Since(began) < time.Minute || time.Since(began) > time.Minute+mostPause {
			t.Errorf("ended after %s: %s", time.Since(began), got)
		}
		began = time.Now()
		got := ends(func(t testing.TB) { Until(t, "the hour", after(time.Hour)) })
		if !strings.HasPrefix(got, "not within 2m0s: the hour: 2m0.") || !strings.HasSuffix(got, "s have passed") {
			t.Errorf("%q", got)
		}
		if got := ends(func(t testing.TB) {
			Within(t, time.Second, "the hour",
				after(time.Hour))
		}); !strings.HasPrefix(got, "not within 1s: the hour: ") {
			t.Errorf("%q", got)
		}
	})
}

// What comes soon is seen soon, and a long wait looks twice a second.
func TestPauses(t *testing.T) {
	for waited, want := range map[time.Duration]time.Duration{
		0:           leastPause,
		time.Second: 50 * time.Millisecond,
		time.Minute: mostPause,
	} {
		if got := pauseAfter(waited); got != want {
			t.Errorf("after %s a pause of %s, want %s", waited, got, want)
		}
	}
}

// A look that takes longer than the limit counts: the machine may have stood still meanwhile.
func TestSlowLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		Until(t, "the second look", func() error {
			looks++
			time.Sleep(Limit - time.Second)
			return That(looks == 2, "look %d", looks)
		})
	})
}

func TestTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		looks, stop, not := 0, errors.New("the server has ended"), errors.New("not yet")
		err := Try(ctx, time.Minute, func() error {
			if looks++; looks == 3 {
				cancel(stop)
			}
			return not
		})
		if !errors.Is(err, stop) || !errors.Is(err, not) || looks != 3 {
			t.Errorf("%v after %d looks", err, looks)
		}
		if err := Try(ctx, 0, func() error { return nil }); err != nil {
			t.Errorf("what is there at the first look: %v", err)
		}
	})
}

func TestChan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent, never := make(chan int), make(chan int)
		go func() {
			time.Sleep(time.Minute)
			sent <- 7
		}()
		if got := Chan(t, "the seven", sent); got != 7 {
			t.Errorf("got %d", got)
		}
		if got := ends(func(t testing.TB) { Chan(t, "anything", never) }); got != "not within 2m0s: anything" {
			t.Errorf("%q", got)
		}
	})
}

func TestPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		Pass(time.Second, "the test of Pass")
		PassTo(began.Add(time.Minute), "the test of PassTo")
		PassTo(began, "an instant that has gone")
		if time.Since(began) != time.Minute {
			t.Errorf("%s passed", time.Since(began))
		}
		defer func() {
			if recover() == nil {
				t.Error("no reason is needed")
			}
		}()
		Pass(time.Second, "")
	})
}

// In virtual time no timer is late; beside it, what keeps a timer's goroutine from running counts.
func TestLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := Lateness()
		time.Sleep(time.Minute)
		if late := stop(); late != 0 {
			t.Errorf("late by %s on a machine that is never late", late)
		}
	})
}
