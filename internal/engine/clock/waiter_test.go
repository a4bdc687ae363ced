package clock

import (
	"slices"
	"testing"
	"time"
)

func TestWaiter(t *testing.T) {
	for name, make := range map[string]func() (Waiter, error){
		"platform": NewWaiter,
		"portable": func() (Waiter, error) { return NewPortableWaiter(func() {}), nil },
	} {
		t.Run(name, func(t *testing.T) {
			w, err := make()
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			for _, d := range []time.Duration{-1, 0, time.Microsecond, 3 * time.Millisecond} {
				began := time.Now()
				if !w.Wait(d) || time.Since(began) < d {
					t.Errorf("a wait of %s ended after %s", d, time.Since(began))
				}
			}
			time.AfterFunc(5*time.Millisecond, w.Interrupt)
			began := time.Now()
			if w.Wait(time.Minute) || time.Since(began) > 10*time.Second {
				t.Errorf("the interrupt came after %s", time.Since(began))
			}
			if w.Wait(time.Minute) {
				t.Error("an interrupted waiter waits again")
			}
		})
	}
}

// BenchmarkWaiter compares how late the waiter and a Go timer are: median and 99th percentile of the lateness after 1.3
// ms.
func BenchmarkWaiter(b *testing.B) {
	w, err := NewWaiter()
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	for name, wait := range map[string]func(time.Duration){
		"waiter":  func(d time.Duration) { w.Wait(d) },
		"goTimer": time.Sleep,
	} {
		b.Run(name, func(b *testing.B) {
			var late []time.Duration
			for b.Loop() {
				until := time.Now().Add(1300 * time.Microsecond)
				wait(time.Until(until))
				late = append(late, time.Since(until))
			}
			slices.Sort(late)
			b.ReportMetric(float64(late[len(late)/2])/1e3, "us-late-p50")
			b.ReportMetric(float64(late[len(late)*99/100])/1e3, "us-late-p99")
		})
	}
}
