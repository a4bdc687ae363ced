// Package egress is how the operator sends HTTP requests to addresses that users name: to hosts
// that it may reach only, without following redirects, and with bounded answers.
package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
)

// maxHeader is the longest header of an answer, in bytes.
const maxHeader = 64 << 10

// Errors of a request.
var (
	// ErrForbidden is that the host is not among those that the operator may reach.
	ErrForbidden = errors.New("the operator may not send requests to this host")
	// ErrRedirected is the answer of a server that names another address.
	ErrRedirected = errors.New("the server redirects to another address, which is not followed")
)

// Hosts are the only hosts that requests go to: names such as prometheus.monitoring.svc,
// *.example.com for all names that end so, and addresses. Without any, requests go nowhere.
type Hosts []string

// ParseHosts reads a comma-separated list. A name is written without scheme and port, an IPv6
// address without brackets.
func ParseHosts(list string) (Hosts, error) {
	var hosts Hosts
	for host := range strings.SplitSeq(list, ",") {
		host = strings.TrimSpace(host)
		if host == "" {
			continue
		}
		_, err := netip.ParseAddr(host)
		if err != nil && !isName(strings.TrimPrefix(host, "*.")) {
			return nil, fmt.Errorf(
				"%q is no host: want a name such as prometheus.monitoring.svc, *.example.com for all names "+
					"that end so, or an address, without scheme and port", host)
		}
		hosts = append(hosts, host)
	}
	return hosts, nil
}

func isName(host string) bool {
	return host != "" &&
		strings.Trim(strings.ToLower(host), "abcdefghijklmnopqrstuvwxyz0123456789.-_") == "" &&
		strings.Trim(host, ".") != ""
}

// Allows reports whether requests may go to a host, wherever its name leads.
func (h Hosts) Allows(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return h.names(address)
	}
	host = canonical(host)
	for _, pattern := range h {
		pattern = canonical(pattern)
		suffix, wild := strings.CutPrefix(pattern, "*")
		if host == pattern || wild && strings.HasPrefix(suffix, ".") && strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}

func canonical(name string) string {
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// names reports whether an address itself is in the list.
func (h Hosts) names(address netip.Addr) bool {
	return slices.ContainsFunc(h, func(pattern string) bool {
		named, err := netip.ParseAddr(pattern)
		return err == nil && named.Unmap() == address.Unmap()
	})
}

// Way is how requests leave the operator.
type Way struct {
	Hosts Hosts
	// the operator's flag with the hosts, for messages
	Flag string
	// nil = over the network
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Check returns ErrForbidden for a host that requests may not go to. A host that passes may still
// have an address that is refused when it is dialed.
func (w Way) Check(host string) error {
	if !w.Hosts.Allows(host) {
		return fmt.Errorf("%w: it is not among its %s, where an administrator names hosts", ErrForbidden,
			w.Flag)
	}
	return nil
}

// To returns a transport to an address. Each request has its own, so that no connection outlives a
// login. It ignores the proxies of the environment. The error is ErrForbidden.
func (w Way) To(address *url.URL, secure *tls.Config) (*http.Transport, error) {
	if err := w.Check(address.Hostname()); err != nil {
		return nil, err
	}
	dial := w.Dial
	if dial == nil {
		dial = (&net.Dialer{Control: w.control}).DialContext
	}
	return &http.Transport{
		DialContext:            dial,
		TLSClientConfig:        secure,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
	}, nil
}

// NoRedirect is CheckRedirect of a client that follows none.
func NoRedirect(*http.Request, []*http.Request) error {
	return ErrRedirected
}

// control refuses to dial an address that requests may not go to. It sees what a name was resolved
// to for this very connection, whatever that name meant before.
func (w Way) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !reachable(to.Addr(), w.Hosts) {
		return fmt.Errorf(
			"%w: its address %s is one of the operator's pod, of its node or of a cloud's metadata, and "+
				"is itself not among its %s", ErrForbidden, to.Addr(), w.Flag)
	}
	return nil
}

// local are the addresses at which no tenant's server is, but services for this node, beside those
// that netip knows.
var local = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), // this host
	netip.MustParsePrefix("255.255.255.255/32"),
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle Cloud
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google Cloud
	// NAT64 of a network's own, in which the place of the IPv4 address is not known
	netip.MustParsePrefix("64:ff9b:1::/48"),
}

// embedding are the IPv6 prefixes that hold an IPv4 address to which a network may forward, and the
// bytes before it.
var embedding = []struct {
	prefix netip.Prefix
	before int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64
	{netip.MustParsePrefix("::/96"), 12},           // IPv4-compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // IPv4-translated
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4
}

// reachable reports whether requests may go to an address that an allowed host has.
func reachable(address netip.Addr, hosts Hosts) bool {
	if hosts.names(address) {
		return true
	}
	address = address.Unmap().WithZone("")
	for _, in := range embedding {
		if in.prefix.Contains(address) {
			bytes := address.As16()
			if !reachable(netip.AddrFrom4([4]byte(bytes[in.before:in.before+4])), hosts) {
				return false
			}
		}
	}
	if address.IsLoopback() || address.IsLinkLocalUnicast() || address.IsMulticast() ||
		address.IsUnspecified() {
		return false
	}
	return !slices.ContainsFunc(local, func(p netip.Prefix) bool { return p.Contains(address) })
}

// Limited is a body that ends with an error where it is too long.
type Limited struct {
	io.ReadCloser
	Left    int   // bytes
	TooLong error // that error
}

func (l *Limited) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if l.Left -= n; l.Left < 0 {
		return 0, l.TooLong
	}
	return n, err
}
