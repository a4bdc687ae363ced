// Package egress is how the operator sends HTTP requests to addresses that users name: to hosts that it may reach only, without following redirects, and
// with bounded answers.
package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
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

// Hosts are the only hosts that requests go to, such as prometheus.monitoring.svc, or *.example.com for all names that end so. Without any, requests go to
// every host but those with a loopback or link-local address.
type Hosts []string

// Allows reports whether requests may go to a host.
func (h Hosts) Allows(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, pattern := range h {
		pattern = strings.ToLower(pattern)
		if suffix, wild := strings.CutPrefix(pattern, "*"); host == pattern || wild && strings.HasPrefix(suffix, ".") && strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return len(h) == 0
}

// Way is how requests leave the operator.
type Way struct {
	Hosts Hosts
	Flag  string                                                               // the operator's flag with the hosts, for messages
	Dial  func(ctx context.Context, network, address string) (net.Conn, error) // nil = over the network
}

// To returns a transport to an address. Each request has its own, so that no connection outlives a login. It ignores the proxies of the environment. The error
// is ErrForbidden.
func (w Way) To(address *url.URL, secure *tls.Config) (*http.Transport, error) {
	if !w.Hosts.Allows(address.Hostname()) {
		return nil, fmt.Errorf("%w: it is not among its %s", ErrForbidden, w.Flag)
	}
	dial := w.Dial
	if dial == nil {
		dialer := &net.Dialer{}
		if len(w.Hosts) == 0 {
			dialer.Control = w.refuseLocal
		}
		dial = dialer.DialContext
	}
	return &http.Transport{DialContext: dial, TLSClientConfig: secure, DisableCompression: true, MaxResponseHeaderBytes: maxHeader}, nil
}

// NoRedirect is CheckRedirect of a client that follows none.
func NoRedirect(*http.Request, []*http.Request) error { return ErrRedirected }

// refuseLocal refuses addresses of this pod and of its node, such as a cloud's metadata service. It sees the address that a name was resolved to.
func (w Way) refuseLocal(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() || ip.IsMulticast() || ip.IsUnspecified() {
		return fmt.Errorf("the operator sends no requests to loopback and link-local addresses (%s) of hosts that are not among its %s", host, w.Flag)
	}
	return nil
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
