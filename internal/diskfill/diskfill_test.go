package diskfill_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/diskfill"
)

func order(change func(*diskfill.Order)) diskfill.Order {
	o := diskfill.Order{Capacity: 256 << 20, Leave: 16 << 20, For: 40 * time.Second}
	if change != nil {
		change(&o)
	}
	return o
}

// What the program reads is what the operator has written.
func TestArguments(t *testing.T) {
	for _, o := range []diskfill.Order{
		order(nil),
		order(func(o *diskfill.Order) { o.Capacity, o.Leave, o.For = 1<<62, 0, 1500*time.Millisecond }),
	} {
		arguments := o.Arguments(diskfill.VerbFill)
		got, err := diskfill.ParseOrder(arguments[1:])
		if err != nil || got != o || arguments[0] != diskfill.VerbFill {
			t.Errorf("%v is read as %+v, %v", arguments, got, err)
		}
	}
	for _, arguments := range [][]string{nil, {"1", "2"}, {"x", "1", "1s"}, {"1", "", "1s"}, {"1", "1", "1"}} {
		if o, err := diskfill.ParseOrder(arguments); err == nil {
			t.Errorf("%q is read as %+v", arguments, o)
		}
	}
}

func TestOrdersThatCannotBeCarriedOut(t *testing.T) {
	for want, change := range map[string]func(*diskfill.Order){
		"the capacity is 0 bytes":        func(o *diskfill.Order) { o.Capacity = 0 },
		"-1 bytes are to be left":        func(o *diskfill.Order) { o.Leave = -1 },
		"must last between 1ms and":      func(o *diskfill.Order) { o.For = 0 },
		"it is to last 2h0m1s, and must": func(o *diskfill.Order) { o.For = diskfill.Longest + time.Second },
	} {
		if err := order(change).Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestState(t *testing.T) {
	got, err := diskfill.ParseState([]byte(`{"full":true,"sizeBytes":9,"heldBytes":7,"leftBytes":2}` + "\n"))
	if want := (diskfill.State{Full: true, Size: 9, Held: 7, Left: 2}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := diskfill.ParseState([]byte("sh: not found")); err == nil || !strings.Contains(err.Error(), "sh: not found") {
		t.Errorf("%v does not quote the output", err)
	}
}
