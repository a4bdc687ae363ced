package engine

import (
	"bytes"
	"net"
	"strconv"

	"github.com/redquake/redquake/internal/redis/resp"
)

// redirection is a parsed error reply that names another server.
type redirection struct {
	kind redirectionKind
	slot uint16
	to   string // host:port
}

type redirectionKind uint8

const (
	moved    redirectionKind = iota // the slot has moved
	ask                             // the slot is being moved: this key may be at the other server already
	tryAgain                        // the keys of one command are on both sides of such a migration; without slot and server
)

// parseRedirection parses "MOVED 3999 10.0.0.1:6379", a reply of the server at from; nil if it is no redirection.
func parseRedirection(message []byte, from string) *redirection {
	word, rest, _ := bytes.Cut(message, []byte(" "))
	r := &redirection{}
	switch string(word) {
	case "MOVED":
	case "ASK":
		r.kind = ask
	case "TRYAGAIN":
		return &redirection{kind: tryAgain}
	default:
		return nil
	}
	slot, address, _ := bytes.Cut(rest, []byte(" "))
	n, err := strconv.ParseUint(string(slot), 10, 14) // of 16,384
	if err != nil {
		return nil
	}
	r.slot, r.to = uint16(n), withHost(string(address), from)
	return r
}

// withHost completes an address of a redirection: a server that does not know its own address leaves the host out.
func withHost(address, from string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "" {
		return address
	}
	host, _, _ = net.SplitHostPort(from)
	return net.JoinHostPort(host, port)
}

var asking = resp.AppendCommand(nil, "ASKING")

// appendAsking appends encoded commands with ASKING before each of them, as it holds for one command only.
func appendAsking(dst, commands []byte) []byte {
	for len(commands) > 0 {
		end := commandEnd(commands)
		dst = append(append(dst, asking...), commands[:end]...)
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
