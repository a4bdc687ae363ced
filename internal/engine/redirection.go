package engine

import (
	"bytes"
	"net"
	"strconv"
)

// movedTo parses "MOVED 3999 10.0.0.1:6379", a reply of the server at from.
func movedTo(message []byte, from string) (slot uint16, to string, ok bool) {
	return redirection(message, "MOVED ", from)
}

func redirection(message []byte, word, from string) (slot uint16, to string, ok bool) {
	rest, ok := bytes.CutPrefix(message, []byte(word))
	slotText, address, _ := bytes.Cut(rest, []byte(" "))
	n, err := strconv.ParseUint(string(slotText), 10, 16)
	return uint16(n), withHost(string(address), from), ok && err == nil
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
