// Package diskfill fills a volume, beside the pod that uses it. It is the contract between the
// operator and the program in a holder pod: the verbs of the program, its arguments and its output;
// and the program.
//
// What fills the volume is a file without a name: the kernel frees it when the program ends, however
// that ends, and when the file system is mounted again after the node has lost its power. Nothing is
// left for anybody to delete.
package diskfill

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Longest is how long a volume stays full at most. The program frees it then by itself.
const Longest = 2 * time.Hour

// Order is what is to be filled.
type Order struct {
	// Capacity of the volume's claim, in bytes: a file system that is larger is not the claim's alone,
	// and is not filled.
	Capacity int64 `json:"capacity"`
	// Leave is how many bytes are left for others, at most.
	Leave int64 `json:"leave"`
	// For is after which time the program frees the volume by itself; at most Longest.
	For time.Duration `json:"forNanoseconds"`
}

// Check returns why an order cannot be carried out.
func (o Order) Check() error {
	switch {
	case o.Capacity <= 0:
		return fmt.Errorf("the capacity is %d bytes", o.Capacity)
	case o.Leave < 0:
		return fmt.Errorf("%d bytes are to be left", o.Leave)
	case o.For < time.Millisecond || o.For > Longest:
		return fmt.Errorf("it is to last %v, and must last between 1ms and %v", o.For, Longest)
	}
	return nil
}

// The verbs of the program.
const (
	VerbServe   = "serve"   // waits for the others, and does what they say: what the container runs
	VerbCheck   = "check"   // says whether the volume can be filled
	VerbFill    = "fill"    // fills it, and keeps it full
	VerbRelease = "release" // frees it, for ever
	VerbShow    = "show"    // returns the state
)

// Arguments are those of a verb with an order.
func (o Order) Arguments(verb string) []string {
	return []string{
		verb, strconv.FormatInt(o.Capacity, 10), strconv.FormatInt(o.Leave, 10), o.For.String(),
	}
}

// ParseOrder reads what Arguments returns, without the verb.
func ParseOrder(arguments []string) (Order, error) {
	if len(arguments) != 3 {
		return Order{}, fmt.Errorf("an order needs 3 arguments, not %d: the capacity of the claim and what is "+
			"to be left, both in bytes, and a duration", len(arguments))
	}
	var o Order
	var failed [3]error
	o.Capacity, failed[0] = strconv.ParseInt(arguments[0], 10, 64)
	o.Leave, failed[1] = strconv.ParseInt(arguments[1], 10, 64)
	o.For, failed[2] = time.ParseDuration(arguments[2])
	if err := errors.Join(failed[:]...); err != nil {
		return Order{}, err
	}
	return o, o.Check()
}

// State is what a holder pod does with its volume: the output of all verbs but serve, as JSON.
type State struct {
	// Refused is why the volume is not filled: nothing was written to it. "" = it can be.
	Refused string `json:"refused,omitempty"`
	// Released: it was freed, and is not filled again
	Released bool `json:"released,omitempty"`
	// Full: it was filled, and stays so
	Full bool `json:"full,omitempty"`
	// Size of the file system, what of it the file without a name has, and what is left for others, in
	// bytes.
	Size int64 `json:"sizeBytes"`
	Held int64 `json:"heldBytes"`
	Left int64 `json:"leftBytes"`
}

// ParseState reads such an output.
func ParseState(output []byte) (State, error) {
	var s State
	if err := json.Unmarshal(output, &s); err != nil {
		return State{}, fmt.Errorf("read the state %.200q: %w", output, err)
	}
	return s, nil
}
