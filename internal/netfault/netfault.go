// Package netfault is the contract between the operator and the program in a pod that drops or delays
// packets of the pod: its arguments and its output. Package kernel does so.
package netfault

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// Longest is how long the kernel drops or delays packets at most before Hold has to be repeated. It
	// is by how much a fault outlasts whatever should have ended it.
	Longest = 10 * time.Second
	// Whole is the share of all packets.
	Whole = 10000
	// MostAddresses is how many peers a rule has at most.
	MostAddresses = 2048
)

// Rule is which packets of a pod are dropped, or delayed.
type Rule struct {
	ID      string       // of the fault: lower case letters, digits and dashes, at most 63
	In, Out bool         // packets that the pod receives; packets that it sends
	Peers   []netip.Addr // whose packets are dropped; with Except: all packets but those of the peers
	Except  bool
	Share   int           // how many of Whole packets are dropped, at random, in each direction
	For     time.Duration // after which the kernel stops that by itself; at most Longest
	Delay   Delay
}

// Delay is by how much packets are delayed that a pod sends, instead of dropped. The zero value is
// that they are dropped.
type Delay struct {
	Latency time.Duration // at most LongestDelay
	Jitter  time.Duration // by how much it varies, in both directions; at most Latency
	// of Whole, how much the delay of a packet resembles that of the one before
	Correlation int
}

// LongestDelay is the longest latency.
const LongestDelay = 10 * time.Second

func (d Delay) check(r *Rule) error {
	switch {
	case d == Delay{}:
		return nil
	case d.Latency < time.Millisecond || d.Latency > LongestDelay:
		return fmt.Errorf("the latency is %v, and must be between 1ms and %v", d.Latency, LongestDelay)
	case d.Jitter < 0 || d.Jitter > d.Latency:
		return fmt.Errorf("the jitter is %v, with a latency of %v", d.Jitter, d.Latency)
	case d.Correlation < 0 || d.Correlation > Whole:
		return fmt.Errorf("the correlation is %d of %d", d.Correlation, Whole)
	case r.In || r.Share != Whole:
		return errors.New("all packets that the pod sends are delayed, and none that it receives")
	}
	return nil
}

var identity = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Check returns why a rule cannot be held.
func (r *Rule) Check() error {
	switch {
	case !identity.MatchString(r.ID):
		return fmt.Errorf("%q is no ID of a fault", r.ID)
	case !r.In && !r.Out:
		return errors.New("no direction is set")
	case len(r.Peers) == 0 && !r.Except:
		return errors.New("there are no peers")
	case len(r.Peers) > MostAddresses:
		return fmt.Errorf("there are %d peers, and at most %d are possible", len(r.Peers), MostAddresses)
	case r.Share < 1 || r.Share > Whole:
		return fmt.Errorf("the share is %d of %d packets", r.Share, Whole)
	case r.For < time.Millisecond || r.For > Longest:
		return fmt.Errorf("it is to last %v, and must last between 1ms and %v", r.For, Longest)
	}
	for _, peer := range r.Peers {
		if !peer.IsValid() {
			return errors.New("a peer has no address")
		}
	}
	return r.Delay.check(r)
}

// The verbs of the program.
const (
	VerbSleep   = "sleep"   // waits until it is terminated: what the container runs
	VerbTry     = "try"     // says whether the kernel can do what the rule in the arguments says
	VerbHold    = "hold"    // drops or delays packets by that rule
	VerbRenew   = "renew"   // goes on with that, unless it has ended
	VerbRelease = "release" // ends that, for ever
	VerbShow    = "show"    // returns the state
)

// HoldArguments are the arguments for VerbHold of a rule.
func HoldArguments(r *Rule) []string {
	return append([]string{VerbHold}, r.arguments()...)
}

// TryArguments are the arguments for VerbTry of a rule.
func TryArguments(r *Rule) []string {
	return append([]string{VerbTry}, r.arguments()...)
}

// RenewArguments are the arguments for VerbRenew of a rule.
func RenewArguments(r *Rule) []string {
	return append([]string{VerbRenew}, r.arguments()...)
}

func (r *Rule) arguments() []string {
	peers := make([]string, len(r.Peers))
	for i, peer := range r.Peers {
		peers[i] = peer.String()
	}
	return []string{
		r.ID, strconv.FormatBool(r.In), strconv.FormatBool(r.Out),
		strconv.FormatBool(r.Except), strconv.Itoa(r.Share), r.For.String(), r.Delay.Latency.String(),
		r.Delay.Jitter.String(), strconv.Itoa(r.Delay.Correlation), strings.Join(peers, ","),
	}
}

// ParseRule reads the output of HoldArguments or RenewArguments, without the verb.
func ParseRule(arguments []string) (*Rule, error) {
	if len(arguments) != 10 {
		return nil, fmt.Errorf(
			"a rule needs 10 arguments, not %d: an ID, whether packets in, whether packets out, whether all but "+
				"the peers, a share, a duration, a latency, a jitter, a correlation, and the addresses of the peers",
			len(arguments))
	}
	r := &Rule{ID: arguments[0]}
	var failed [8]error
	r.In, failed[0] = strconv.ParseBool(arguments[1])
	r.Out, failed[1] = strconv.ParseBool(arguments[2])
	r.Except, failed[2] = strconv.ParseBool(arguments[3])
	r.Share, failed[3] = strconv.Atoi(arguments[4])
	r.For, failed[4] = time.ParseDuration(arguments[5])
	r.Delay.Latency, failed[5] = time.ParseDuration(arguments[6])
	r.Delay.Jitter, failed[6] = time.ParseDuration(arguments[7])
	r.Delay.Correlation, failed[7] = strconv.Atoi(arguments[8])
	if err := errors.Join(failed[:]...); err != nil {
		return nil, err
	}
	if arguments[9] != "" {
		for text := range strings.SplitSeq(arguments[9], ",") {
			peer, err := netip.ParseAddr(text)
			if err != nil {
				return nil, fmt.Errorf("address of a peer: %w", err)
			}
			r.Peers = append(r.Peers, peer.Unmap())
		}
	}
	return r, r.Check()
}

// State is what the kernel does for a fault: the output of all verbs but sleep, as JSON.
type State struct {
	// there are rules, also if they drop nothing any more
	Exists bool `json:"exists"`
	// they were released: no others are set for the fault
	Released bool `json:"released,omitempty"`
	// for how long packets are still dropped or delayed, at most; 0 = they are not
	Left time.Duration `json:"leftNanoseconds"`
	// Unsupported is why the kernel cannot do it; "" = it can
	Unsupported string `json:"unsupported,omitempty"`
	// packets of the peers since the rules are there, and those of them that were dropped, or delayed
	SeenIn     uint64 `json:"seenIn"`
	SeenOut    uint64 `json:"seenOut"`
	DroppedIn  uint64 `json:"droppedIn"`
	DroppedOut uint64 `json:"droppedOut"`
}

// ParseState reads such an output.
func ParseState(output []byte) (State, error) {
	var s State
	if err := json.Unmarshal(output, &s); err != nil {
		return State{}, fmt.Errorf("read the state %.200q: %w", output, err)
	}
	return s, nil
}
