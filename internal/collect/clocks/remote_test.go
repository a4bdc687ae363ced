package clocks

import (
	"testing"
	"time"
)

func TestClockKeepsTheBestRoundTrip(t *testing.T) {
	const ms = int64(time.Millisecond)
	var c Remote
	if _, _, ok := c.Estimate(0); ok || c.Settled() {
		t.Fatal("an estimate without a reading")
	}
	// The true offset is 1 s. A slow answer, whose delay is only on the way back, leads to an error of half the delay.
	c.Observe(0, 20*ms, 1000*ms)
	if offset, uncertainty, _ := c.Estimate(10 * ms); offset != 990*ms || uncertainty != 10*ms {
		t.Errorf("one slow trip: %d ± %d", offset, uncertainty)
	}
	c.Observe(100*ms, 102*ms, 1101*ms)
	c.Observe(200*ms, 260*ms, 1260*ms)
	offset, uncertainty, _ := c.Estimate(201 * ms)
	if offset != 1000*ms || uncertainty != 1*ms+100*ms*50/1e6 {
		t.Errorf("best of three: %d ± %d", offset, uncertainty)
	}
	if c.Settled() {
		t.Error("settled after three")
	}
	// The true offset is always within the uncertainty; new readings replace old ones.
	for i := range int64(100) {
		at := (1000 + i*100) * ms
		c.Observe(at, at+4*ms, at+1003*ms)
	}
	offset, uncertainty, _ = c.Estimate(11000 * ms)
	if !c.Settled() || offset != 1001*ms || uncertainty < 2*ms || uncertainty > 2*ms+10*ms {
		t.Errorf("after a hundred: %d ± %d", offset, uncertainty)
	}
}

func TestClockPrefersFreshOverSlightlyShorter(t *testing.T) {
	const ms = int64(time.Millisecond)
	var c Remote
	c.Observe(0, 1*ms, 0)
	late := int64(10 * time.Minute)
	c.Observe(late, late+2*ms, late+1*ms+30*ms) // the clocks have drifted by 30 ms in 10 min
	if offset, _, _ := c.Estimate(late + 2*ms); offset != 30*ms {
		t.Errorf("offset %v, want the fresh 30 ms", time.Duration(offset))
	}
}

func TestClockThatStoodStill(t *testing.T) {
	const ms = int64(time.Millisecond)
	var c Remote
	for i := range int64(10) {
		if moved := c.Observe(i*1000*ms, i*1000*ms+2*ms, i*1000*ms+501*ms); moved != 0 {
			t.Fatalf("reading %d: moved by %v", i, time.Duration(moved))
		}
	}
	// The pod's machine was suspended for 2 s.
	if moved := c.Observe(15000*ms, 15010*ms, 13505*ms); moved != -2000*ms {
		t.Errorf("moved by %v, want -2 s", time.Duration(moved))
	}
	if offset, uncertainty, _ := c.Estimate(15005 * ms); offset != -1500*ms || uncertainty != 5*ms {
		t.Errorf("offset %v ± %v", time.Duration(offset), time.Duration(uncertainty))
	}
}
