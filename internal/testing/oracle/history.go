// Package oracle holds the figures of the analysis against histories whose truth is known because they were made. A
// History is drawn from a seed, played through the real load engine in virtual time, and its Truth follows from what
// was planned alone: this package computes none of it with the analysis.
// Check compares the two: the truth is within a figure's bounds, or the figure is doubted; where nothing was done,
// nothing is claimed.
//
// The order is draw -> play -> truth -> check, a file each; minimize makes a failing history short.
package oracle

import (
	"fmt"
	"strings"
	"time"
)

// Way is what an event does.
type Way int

// The ways. The first ones make requests fail, or wait.
const (
	Stop      Way = iota // the servers' processes are stopped: connections stay open, and are answered afterwards
	Hold                 // the network holds what is sent, new connections too
	Refuse               // connections are reset, new ones are refused
	Loading              // every command is answered with LOADING
	ReadOnly             // writes are answered with READONLY
	FailReads            // reads are answered with an error
	Lower                // the level: a command takes 1/(1-Share) times as long
	// the level rises by Share of itself over the time, or falls if it is negative, and stays. Afterwards it is 1
	Drift
	Stall  // the load generator does not run
	Starve // the load generator does not run for Share of the time, for 4 ms at a time at most
	Lose   // the servers lose what was written in the time, at its end, and say nothing
	wayCount
)

var wayNames = [wayCount]string{
	"Stop", "Hold", "Refuse", "Loading", "ReadOnly", "FailReads", "Lower", "Drift", "Stall",
	"Starve", "Lose",
}

func (w Way) String() string {
	return wayNames[w]
}

// All is the Only of an event that affects all shards, or all load pods.
const All = -1

// Event is something that happens from At to At+For, counted from t0; before t0 At is negative.
type Event struct {
	Way     Way
	At, For time.Duration
	Only    int     // the shard, or of Stall and Starve the load pod, that it affects alone; or All
	Share   float64 // of Lower, Drift and Starve
}

func (e Event) end() time.Duration {
	return e.At + e.For
}

// History is a load, a fault at the instant t0, and what happens around it.
type History struct {
	Rate     float64       // of an open loop, requests/s over all pods; 0 = a closed loop
	Users    int           // of a closed loop
	Cost     time.Duration // of a command; a closed loop needs one
	Pods     int
	Shards   int
	Reads    int     // of so many requests are reads
	Writes   int     // and so many writes
	Probe    float64 // requests/s to each shard
	Ledger   float64 // the share of requests that are ledger writes; 0 = none
	Timeout  time.Duration
	Baseline time.Duration // from the start of the load to t0
	Observed time.Duration // from t0 to the end of the load
	Hold     time.Duration // for how long a recovery must hold
	SeenAt   time.Duration // when the effect of the fault was observed, from t0; 0 = at once
	Harmless time.Duration // when a second fault is injected, which does nothing, from t0; 0 = none
	Events   []Event
}

// Disturbed reports whether the load generator was kept from running.
func (h *History) Disturbed() bool {
	return h.has(Stall) || h.has(Starve)
}

func (h *History) has(w Way) bool {
	for _, e := range h.Events {
		if e.Way == w {
			return true
		}
	}
	return false
}

// String is the history as a Go literal, which can be kept as a test.
func (h *History) String() string {
	var b strings.Builder
	field := func(name string, set bool, value any) {
		if set {
			fmt.Fprintf(&b, "%s: %v, ", name, value)
		}
	}
	b.WriteString("History{")
	field("Rate", h.Rate > 0, h.Rate)
	field("Users", h.Users > 0, h.Users)
	field("Cost", h.Cost > 0, literal(h.Cost))
	fmt.Fprintf(&b, "Pods: %d, Shards: %d, Reads: %d, Writes: %d, ", h.Pods, h.Shards, h.Reads, h.Writes)
	field("Probe", h.Probe > 0, h.Probe)
	field("Ledger", h.Ledger > 0, h.Ledger)
	for _, d := range []struct {
		name string
		d    time.Duration
	}{
		{"Timeout", h.Timeout},
		{"Baseline", h.Baseline},
		{"Observed", h.Observed},
		{"Hold", h.Hold},
		{"SeenAt", h.SeenAt},
		{"Harmless", h.Harmless},
	} {
		field(d.name, d.d > 0, literal(d.d))
	}
	b.WriteString("Events: []Event{")
	for i, e := range h.Events {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "{Way: %s, At: %s, For: %s, Only: %s", e.Way, literal(e.At), literal(e.For), only(e.Only))
		if e.Share != 0 {
			fmt.Fprintf(&b, ", Share: %v", e.Share)
		}
		b.WriteString("}")
	}
	b.WriteString("}}")
	return b.String()
}

func only(i int) string {
	if i == All {
		return "All"
	}
	return fmt.Sprint(i)
}

// literal is a duration as Go source, to the microsecond.
func literal(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d%time.Second == 0:
		return fmt.Sprintf("%d*time.Second", d/time.Second)
	case d%time.Millisecond == 0:
		return fmt.Sprintf("%d*time.Millisecond", d/time.Millisecond)
	}
	return fmt.Sprintf("%d*time.Microsecond", d/time.Microsecond)
}
