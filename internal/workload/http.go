package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/sample"
)

// HTTP is requests against an application's API, with the Redis under test somewhere behind it. URL, body and the headers' values may hold the
// placeholders {key}, {int}, {user} and {seq} of a command.
//
// An answer of 400 and above fails the operation. A redirection is an answer: it is not followed. The answer's body is read to its end.
// It is HTTP/1.1. Go's client sends a GET or HEAD once more where a kept connection turns out to be closed; that is not seen here.
type HTTP struct {
	URL       string   `json:"url"`              // http or https, with a host
	Method    string   `json:"method,omitempty"` // GET (where empty), HEAD, POST, PUT, PATCH or DELETE
	Body      string   `json:"body,omitempty"`
	Headers   []Header `json:"headers,omitempty"`
	KeepAlive bool     `json:"keepAlive"` // connections are used again; else each request makes its own
}

// Header is a header of each request. Host sets the request's host.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// The tallies of http. The sums in microseconds tell the means of the parts of the latency: connectMicros / connects,
// firstByteMicros / answers, bodyMicros / answers, where answers are the status classes together.
const (
	tallyStatus1xx       = iota // the classes follow one another
	tallyConnects        = iota + 4
	tallyConnectMicros   // to make those connections: name resolution and TLS handshake included
	tallyFirstByteMicros // from the request's beginning on its connection to the answer's first byte
	tallyBodyMicros      // from there to the answer's end
)

var httpTallies = []string{"status1xx", "status2xx", "status3xx", "status4xx", "status5xx", "connects", "connectMicros", "firstByteMicros", "bodyMicros"}

var httpMethods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

func (h *HTTP) check(s *Spec) string {
	shown := cutText(h.URL).with(&textArgs{prefix: s.Keyspace.Prefix})
	u, err := url.Parse(shown)
	switch {
	case err != nil:
		return "url: " + err.Error()
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Sprintf("url: is %q, must be http://host... or https://host...", h.URL)
	}
	known := h.Method == ""
	for _, m := range httpMethods {
		known = known || h.Method == m
	}
	if !known {
		return fmt.Sprintf("method: %q is none of %s", h.Method, strings.Join(httpMethods, ", "))
	}
	for i, header := range h.Headers {
		if header.Name == "" || strings.ContainsAny(header.Name, " :\r\n") || strings.ContainsAny(header.Value, "\r\n") {
			return fmt.Sprintf("headers[%d]: %q is no header", i, header.Name)
		}
	}
	return ""
}

func (h *HTTP) method() string {
	if h.Method == "" {
		return http.MethodGet
	}
	return h.Method
}

func (h *HTTP) mix() mix {
	m := h.method()
	reads := m == http.MethodGet || m == http.MethodHead
	return newMix([]Operation{{Name: strings.ToLower(m), Weight: 1, ReadOnly: reads}}, httpTallies...)
}

type httpLoad struct {
	mix
	spec      *HTTP
	keyspace  Keyspace
	url, body text
	headers   []text // their values
	transport *http.Transport
	timeout   time.Duration
}

func newHTTP(s *Spec, o RemoteOptions) *httpLoad {
	h := &httpLoad{mix: s.HTTP.mix(), spec: s.HTTP, keyspace: s.Keyspace, url: cutText(s.HTTP.URL), body: cutText(s.HTTP.Body), timeout: o.Timeout}
	for _, header := range s.HTTP.Headers {
		h.headers = append(h.headers, cutText(header.Value))
	}
	h.transport = &http.Transport{
		Proxy:               nil, // what is measured is the way to the API
		DialContext:         (&net.Dialer{Timeout: o.Timeout}).DialContext,
		TLSHandshakeTimeout: o.Timeout,
		DisableKeepAlives:   !s.HTTP.KeepAlive,
		DisableCompression:  true, // the answer's size is the server's
		MaxIdleConns:        o.Connections,
		MaxIdleConnsPerHost: o.Connections,
	}
	return h
}

// Prepare connects once. Nothing is asked yet: a POST may not be without effect.
func (h *httpLoad) Prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	u, err := url.Parse(h.url.with(&textArgs{prefix: h.keyspace.Prefix}))
	if err != nil {
		return err
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	c, err := h.transport.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return fmt.Errorf("the API at %s cannot be reached: %w", u.Host, err)
	}
	return c.Close()
}

// Close ends the connections that are kept.
func (h *httpLoad) Close() error {
	h.transport.CloseIdleConnections()
	return nil
}

// Caller makes one goroutine's requests.
func (h *httpLoad) Caller(number, of int64) Caller {
	chance := newChance(&h.mix, number)
	return &httpCaller{chance: chance, load: h, draws: newKeyDraw(h.keyspace, number, of, chance), args: textArgs{prefix: h.keyspace.Prefix}}
}

type httpCaller struct {
	chance
	load  *httpLoad
	draws *keyDraw
	args  textArgs
}

// parts are the instants of one request. The first byte is noted by the connection's own goroutine, perhaps after Call has returned.
type parts struct {
	begin, connected time.Time
	fresh            bool         // the connection was made for this request
	firstByte        atomic.Int64 // nanoseconds after begin; 0 = none came
}

// Call sends a request and reads its answer.
func (c *httpCaller) Call(ctx context.Context, _ int, user int64, tally []uint64) Result {
	p := &parts{}
	request, size, err := c.request(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { p.connected, p.fresh = time.Now(), !info.Reused },
		GotFirstResponseByte: func() {
			p.firstByte.Store(int64(time.Since(p.begin)))
		},
	}), user)
	if err != nil {
		return Result{Outcome: Fail, Class: sample.ClassOther}
	}
	p.begin = time.Now()
	answer, err := c.load.transport.RoundTrip(request)
	if p.fresh {
		tally[tallyConnects]++
		tally[tallyConnectMicros] += uint64(p.connected.Sub(p.begin).Microseconds())
	}
	if err != nil {
		if p.connected.IsZero() {
			return Result{Outcome: Fail, Class: sample.ClassRefused}
		}
		return Result{Outcome: Unknown, Class: brokenClass(err), BytesOut: size}
	}
	n, err := io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return Result{Outcome: Unknown, Class: brokenClass(err), BytesIn: int(n), BytesOut: size}
	}
	first := time.Duration(p.firstByte.Load())
	tally[tallyFirstByteMicros] += uint64((first - p.connected.Sub(p.begin)).Microseconds())
	tally[tallyBodyMicros] += uint64((time.Since(p.begin) - first).Microseconds())
	if class := answer.StatusCode/100 - 1; class >= 0 && class < 5 {
		tally[tallyStatus1xx+class]++
	}
	result := Result{BytesIn: int(n), BytesOut: size}
	if answer.StatusCode >= 400 {
		result.Outcome, result.Class = Fail, sample.ClassOther
	}
	return result
}

// request is the next request, and its body's size.
func (c *httpCaller) request(ctx context.Context, user int64) (*http.Request, int, error) {
	c.args.key, c.args.number, c.args.user = c.draws.draw(), c.below(c.load.keyspace.Keys), user
	text := c.load.body.with(&c.args)
	var body io.Reader
	if text != "" {
		body = strings.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, c.load.spec.method(), c.load.url.with(&c.args), body)
	if err != nil {
		return nil, 0, err
	}
	for i, header := range c.load.spec.Headers {
		value := c.load.headers[i].with(&c.args)
		if strings.EqualFold(header.Name, "Host") {
			request.Host = value
			continue
		}
		request.Header.Set(header.Name, value)
	}
	c.args.seq++
	return request, len(text), nil
}

// brokenClass is what broke a request that may have reached the other side.
func brokenClass(err error) sample.Class {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) { // the latter at the end of an aborted run
		return sample.ClassTimeout
	}
	var network net.Error
	switch {
	case errors.As(err, &network) && network.Timeout():
		return sample.ClassTimeout
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), strings.Contains(err.Error(), "connection"):
		return sample.ClassReset
	}
	return sample.ClassProtocol
}
