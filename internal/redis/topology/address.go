package topology

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Servers write addresses in several forms. All are read here: what comes out of a reply is
// host:port as net.Dial takes it, with brackets around an IPv6 address, or "" where it names no
// server.

// AddressOf reads an address that a server wrote as one word, as in MOVED, ASK and CLUSTER NODES.
// Its port is what follows the last colon, as Redis writes IPv6 addresses without brackets:
// "10.0.0.1:6379", "::1:6379", "[::1]:6379", "redis.example:6379". A host that is empty or "?" is
// that of the server at asked, which replied: it does not know its own, or is configured not to
// tell it.
func AddressOf(word, asked string) string {
	at := strings.LastIndexByte(word, ':')
	if at < 0 {
		return ""
	}
	host := word[:at]
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	return joinAddress(endpoint(host, asked), word[at+1:])
}

// endpoint returns the host to dial: the one that was queried, if the server does not tell one.
func endpoint(told, asked string) string {
	if told != "" && told != "?" {
		return told
	}
	host, _, err := net.SplitHostPort(asked)
	if err != nil {
		return asked
	}
	return host
}

// joinAddress makes host:port of what a server said; "" where that cannot be dialled.
func joinAddress(host, port any) string {
	h := TextOf(host)
	p, ok := numberOf(port)
	if !isHost(h) || !ok || p < 1 || p > 65535 {
		return ""
	}
	return net.JoinHostPort(h, strconv.FormatInt(p, 10))
}

// isHost reports whether text may be an IP or a host name: it goes into messages and commands. Only
// an IPv6 address has colons.
func isHost(text string) bool {
	if text == "" || len(text) > 253 || strings.IndexFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') &&
			!strings.ContainsRune(".-_:%", r)
	}) >= 0 {
		return false
	}
	if !strings.Contains(text, ":") {
		return true
	}
	ip, err := netip.ParseAddr(text)
	return err == nil && ip.Is6()
}
