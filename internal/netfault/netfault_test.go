package netfault_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/netfault"
)

func rule(change func(*netfault.Rule)) *netfault.Rule {
	r := &netfault.Rule{
		ID:    "a1b2",
		In:    true,
		Peers: []netip.Addr{netip.MustParseAddr("198.18.0.7"), netip.MustParseAddr("fd18::7")},
		Share: netfault.Whole,
		For:   netfault.Longest,
	}
	if change != nil {
		change(r)
	}
	return r
}

// delayed has the packets delayed that the pod sends.
func delayed(r *netfault.Rule) {
	r.In, r.Out = false, true
	r.Delay = netfault.Delay{Latency: 50 * time.Millisecond, Jitter: 5 * time.Millisecond, Correlation: 2500}
}

// What the program reads is what the operator has written.
func TestArguments(t *testing.T) {
	for _, r := range []*netfault.Rule{
		rule(nil),
		rule(func(r *netfault.Rule) { r.In, r.Out, r.Share, r.For = false, true, 1, 1500*time.Millisecond }),
		rule(func(r *netfault.Rule) { r.Out, r.Except, r.Peers = true, true, nil }),
		rule(delayed),
	} {
		got, err := netfault.ParseRule(netfault.RenewArguments(r)[1:])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Error(diff)
		}
	}
	mapped := netfault.HoldArguments(rule(nil))
	mapped[len(mapped)-1] = "::ffff:198.18.0.7"
	got, err := netfault.ParseRule(mapped[1:])
	if err != nil || !slices.Equal(got.Peers, []netip.Addr{netip.MustParseAddr("198.18.0.7")}) {
		t.Errorf("an address of IPv4 in one of IPv6 is read as %+v, %v", got, err)
	}
}

func TestRulesThatCannotBeHeld(t *testing.T) {
	for want, change := range map[string]func(*netfault.Rule){
		`"" is no ID`:                     func(r *netfault.Rule) { r.ID = "" },
		`"A" is no ID`:                    func(r *netfault.Rule) { r.ID = "A" },
		`is no ID of a fault`:             func(r *netfault.Rule) { r.ID = strings.Repeat("a", 64) },
		"no direction is set":             func(r *netfault.Rule) { r.In = false },
		"there are no peers":              func(r *netfault.Rule) { r.Peers = nil },
		"at most 2048 are possible":       func(r *netfault.Rule) { r.Peers = make([]netip.Addr, 2049) },
		"a peer has no address":           func(r *netfault.Rule) { r.Peers = make([]netip.Addr, 1) },
		"the share is 0 of 10000 packets": func(r *netfault.Rule) { r.Share = 0 },
		"the share is 10001 of":           func(r *netfault.Rule) { r.Share = netfault.Whole + 1 },
		"must last between 1ms and 10s":   func(r *netfault.Rule) { r.For = 0 },
		"the latency is 11s":              func(r *netfault.Rule) { delayed(r); r.Delay.Latency = 11 * time.Second },
		"the jitter is 51ms, with":        func(r *netfault.Rule) { delayed(r); r.Delay.Jitter = 51 * time.Millisecond },
		"the correlation is -1 of 10000":  func(r *netfault.Rule) { delayed(r); r.Delay.Correlation = -1 },
		"and none that it receives":       func(r *netfault.Rule) { delayed(r); r.In = true },
		"all packets that the pod sends":  func(r *netfault.Rule) { delayed(r); r.Share = 1 },
		"it is to last 10.001s, and must": func(r *netfault.Rule) { r.For = netfault.Longest + time.Millisecond },
	} {
		if err := rule(change).Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// FuzzParseRule: whatever comes as arguments, what is accepted can be held, and says the same again.
func FuzzParseRule(f *testing.F) {
	f.Add("a1 true false false 10000 10s 0s 0s 0 198.18.0.7,fd18::7")
	f.Add("a1 1 0 t 1 1.5s 0 0 0 ")
	f.Add("a1 0 1 0 10000 10s 50ms 5ms 2500 198.18.0.7")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := netfault.ParseRule(strings.Split(text, " "))
		if err != nil {
			return
		}
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		again, err := netfault.ParseRule(netfault.HoldArguments(r)[1:])
		if err != nil || !cmp.Equal(r, again, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })) {
			t.Fatalf("%+v is read as %+v, %v", r, again, err)
		}
	})
}

func TestState(t *testing.T) {
	got, err := netfault.ParseState([]byte(`{"exists":true,"leftNanoseconds":7,"seenIn":3,"droppedIn":1,"droppedOut":2}` + "\n"))
	want := netfault.State{Exists: true, Left: 7, SeenIn: 3, DroppedIn: 1, DroppedOut: 2}
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := netfault.ParseState([]byte("sh: not found")); err == nil || !strings.Contains(err.Error(), "sh: not found") {
		t.Errorf("%v does not quote the output", err)
	}
}
