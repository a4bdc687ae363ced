package route

import (
	"bytes"
	"strconv"

	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Redirection is a parsed error reply that names another server.
type Redirection struct {
	Kind RedirectionKind
	Slot uint16
	To   string // host:port; "" = it names no server that can be dialled
}

// RedirectionKind is what a redirection says of its slot.
type RedirectionKind uint8

// The kinds of redirections.
const (
	Moved RedirectionKind = iota // the slot has moved
	// the slot is being moved: this key may be at the other server already
	Ask
	// the keys of one command are on both sides of such a migration; without slot and server
	TryAgain
)

// ParseRedirection parses "MOVED 3999 10.0.0.1:6379", a reply of the server at from; nil if it is
// no redirection.
func ParseRedirection(message []byte, from string) *Redirection {
	word, rest, _ := bytes.Cut(message, []byte(" "))
	r := &Redirection{}
	switch string(word) {
	case "MOVED":
	case "ASK":
		r.Kind = Ask
	case "TRYAGAIN":
		return &Redirection{Kind: TryAgain}
	default:
		return nil
	}
	slot, address, _ := bytes.Cut(rest, []byte(" "))
	n, err := strconv.ParseUint(string(slot), 10, 14) // of 16,384
	if err == nil {
		r.Slot, r.To = uint16(n), topology.AddressOf(string(address), from)
	}
	return r
}

// Asking is the command that must precede one for a slot which is being moved.
var Asking = resp.AppendCommand(nil, "ASKING")

// AppendAsking appends encoded commands with ASKING before each of them, as it holds for one
// command only.
func AppendAsking(dst, commands []byte) []byte {
	for len(commands) > 0 {
		end := commandEnd(commands)
		dst = append(append(dst, Asking...), commands[:end]...)
		commands = commands[end:]
	}
	return dst
}

// commandEnd returns the length of the first of some encoded commands.
func commandEnd(p []byte) int {
	line := func(from int) (n, next int) { // the number in "*2\r\n" or "$3\r\n"
		end := from + bytes.IndexByte(p[from:], '\n')
		n, _ = strconv.Atoi(string(p[from+1 : end-1]))
		return n, end + 1
	}
	words, at := line(0)
	for range words {
		size, next := line(at)
		at = next + size + len("\r\n")
	}
	return at
}
