package route

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/redis/resp"
)

// ASKING precedes each command of a request, as it holds for one command only.
func TestAskingPrecedesEachCommand(t *testing.T) {
	get, set := resp.AppendCommand(nil, "GET", "k"), resp.AppendCommand(nil, "SET", "k", "a\r\n*1\r\n$")
	got := AppendAsking([]byte("before"), slices.Concat(get, set))
	if want := slices.Concat([]byte("before"), Asking, get, Asking, set); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestParseRedirection(t *testing.T) {
	for message, want := range map[string]*Redirection{
		"MOVED 3999 10.0.0.1:6379": {Kind: Moved, Slot: 3999, To: "10.0.0.1:6379"},
		// the server does not know its own address
		"ASK 5 :6380":               {Kind: Ask, Slot: 5, To: "10.0.0.9:6380"},
		"TRYAGAIN Multiple keys":    {Kind: TryAgain},
		"CROSSSLOT Keys in request": nil,
		// IPv6 without brackets, as Redis writes it
		"MOVED 3081 ::1:27354": {Kind: Moved, Slot: 3081, To: "[::1]:27354"},
		"ASK 3081 [::1]:27354": {Kind: Ask, Slot: 3081, To: "[::1]:27354"},
		// cluster-preferred-endpoint-type hostname, of a node without one
		"MOVED 7 ?:6380":                   {Kind: Moved, Slot: 7, To: "10.0.0.9:6380"},
		"MOVED 7 redis-0.redis:1":          {Kind: Moved, Slot: 7, To: "redis-0.redis:1"},
		"MOVED 7 nowhere":                  {Kind: Moved, Slot: 7},
		"ASK 7":                            {Kind: Ask, Slot: 7},
		"MOVED 7 10.0.0.1:0":               {Kind: Moved, Slot: 7},
		"MOVED 70000 10.0.0.1:6379":        {Kind: Moved},
		"MOVED":                            {Kind: Moved},
		strings.Repeat("x", 10) + " 1 a:1": nil,
	} {
		if diff := cmp.Diff(want, ParseRedirection([]byte(message), "10.0.0.9:6379"),
			cmp.AllowUnexported(Redirection{})); diff != "" {
			t.Errorf("%q:\n%s", message, diff)
		}
	}
}
