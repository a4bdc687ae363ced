package socket

import (
	"testing"
	"testing/synctest"
	"time"
)

// A deadline that is rounded to the present must not make a loop spin: in virtual time no time would pass.
func TestPortablePollerLetsTimePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPortablePoller(func() {})
		defer p.Close()
		for until, want := range map[int64]time.Duration{5: 1, 4: 1, 3: 1, 1005: 1000} {
			began := time.Now()
			if p.Wait(5, until); time.Since(began) != want {
				t.Errorf("at 5 ns a wait until %d ns took %s, want %s", until, time.Since(began), want)
			}
		}
	})
}
