// Package prometheus evaluates queries whose results are limited. A server may be slow, hostile or another one than expected: what it can cost is bounded.
package prometheus

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/redquake/redquake/internal/redact"
)

// Limits of what a server may send.
const (
	maxBody   = 1 << 20
	maxError  = 4 << 10
	maxHeader = 64 << 10
)

// Errors of a query.
var (
	errTooLong    = fmt.Errorf("the answer is longer than %d bytes", maxBody)
	errRedirected = errors.New("the server redirects to another address, which is not followed")
	errNoData     = errors.New("the query returns no data")
	errNaN        = errors.New("the query returns NaN")
)

// Server is a Prometheus and the login to it.
type Server struct {
	URL                string
	Token              string // a bearer token; "" = none
	Username, Password string // "" = none
	TLS                *tls.Config
}

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

// Client evaluates queries on servers that are allowed.
type Client struct {
	Hosts Hosts
	Dial  func(ctx context.Context, network, address string) (net.Conn, error) // nil = over the network
}

// Range is the least and the greatest element of a result.
type Range struct{ Least, Greatest float64 }

// Query returns the result of a query. Its errors hold nothing of the login.
func (c *Client) Query(ctx context.Context, s Server, query string, timeout time.Duration) (Range, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	transport, err := c.transport(s)
	if err != nil {
		return Range{}, err
	}
	defer transport.CloseIdleConnections()
	to, err := api.NewClient(api.Config{Address: s.URL, Client: &http.Client{
		Transport:     bounded{transport, s},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirected },
	}})
	if err != nil {
		return Range{}, errors.New("the URL is invalid")
	}
	value, _, _, err := v1.NewAPI(to).Query(ctx, query, time.Time{}, v1.WithTimeout(timeout))
	if err != nil {
		return Range{}, s.hide(causeOf(ctx, err, timeout))
	}
	return rangeOf(value)
}

// transport connects to an allowed host only. Each query has its own, so that no connection outlives a login.
func (c *Client) transport(s Server) (*http.Transport, error) {
	at, err := url.Parse(s.URL)
	if err != nil {
		return nil, errors.New("the URL is invalid")
	}
	if !c.Hosts.Allows(at.Hostname()) {
		return nil, fmt.Errorf("the operator may not query host %s: it is not among its --prometheus-hosts", at.Hostname())
	}
	dial := c.Dial
	if dial == nil {
		dialer := &net.Dialer{}
		if len(c.Hosts) == 0 {
			dialer.Control = refuseLocal
		}
		dial = dialer.DialContext
	}
	return &http.Transport{
		DialContext: dial, TLSClientConfig: s.TLS, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
	}, nil
}

// refuseLocal refuses addresses of this pod and of its node, such as a cloud's metadata service.
func refuseLocal(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() || ip.IsMulticast() || ip.IsUnspecified() {
		return fmt.Errorf("the operator does not query loopback and link-local addresses (%s) of hosts that are not among its --prometheus-hosts", host)
	}
	return nil
}

// bounded logs in, and bounds the bodies of answers.
type bounded struct {
	next   http.RoundTripper
	server Server
}

func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	switch s := b.server; {
	case s.Token != "":
		request.Header.Set("Authorization", "Bearer "+s.Token)
	case s.Username != "" || s.Password != "":
		request.SetBasicAuth(s.Username, s.Password)
	}
	response, err := b.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = &limited{response.Body, maxBody}
	return response, nil
}

// limited is a body that ends with an error where it is too long.
type limited struct {
	io.ReadCloser
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if l.left -= n; l.left < 0 {
		return 0, errTooLong
	}
	return n, err
}

// causeOf is why a query failed, without the URL.
func causeOf(ctx context.Context, err error, timeout time.Duration) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", timeout)
	}
	if of, is := errors.AsType[*url.Error](err); is {
		return of.Err
	}
	return err
}

// hide removes what belongs to the login from an error: a server may send back what it has received.
func (s Server) hide(err error) error {
	text := err.Error()
	text = text[:min(len(text), maxError)]
	secrets := []string{s.Token, s.Password, s.Username}
	if s.Password != "" {
		secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte(s.Username+":"+s.Password)))
	}
	text = redact.Text(text, secrets...)
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

func rangeOf(value model.Value) (Range, error) {
	var all []float64
	switch v := value.(type) {
	case *model.Scalar:
		all = append(all, float64(v.Value))
	case model.Vector:
		for _, sample := range v {
			if sample == nil || sample.Histogram != nil {
				return Range{}, errors.New("the query returns a histogram instead of a number")
			}
			all = append(all, float64(sample.Value))
		}
	default:
		return Range{}, fmt.Errorf("the query returns a %s instead of a scalar or an instant vector", typeOf(value))
	}
	if len(all) == 0 {
		return Range{}, errNoData
	}
	r := Range{Least: math.Inf(1), Greatest: math.Inf(-1)}
	for _, x := range all {
		if math.IsNaN(x) {
			return Range{}, errNaN
		}
		r.Least, r.Greatest = min(r.Least, x), max(r.Greatest, x)
	}
	return r, nil
}

func typeOf(value model.Value) string {
	if value == nil {
		return "nothing"
	}
	return value.Type().String()
}
