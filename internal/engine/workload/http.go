package workload

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
)

type httpLoad struct {
	mix
	spec      *plan.HTTP
	keyspace  plan.Keyspace
	url, body text
	headers   []text // their values
	transport *http.Transport
	timeout   time.Duration
}

func newHTTP(s *plan.Workload, o RemoteOptions) *httpLoad {
	h := &httpLoad{
		mix:      mixOf(s),
		spec:     s.HTTP,
		keyspace: s.Keyspace,
		url:      cutText(s.HTTP.URL),
		body:     cutText(s.HTTP.Body),
		timeout:  o.Timeout,
	}
	for _, header := range s.HTTP.Headers {
		h.headers = append(h.headers, cutText(header.Value))
	}
	h.transport = &http.Transport{
		Proxy:               nil, // a proxy would be part of the measurement
		DialContext:         (&net.Dialer{Timeout: o.Timeout}).DialContext,
		TLSHandshakeTimeout: o.Timeout,
		DisableKeepAlives:   !s.HTTP.KeepAlive,
		DisableCompression:  true, // the size of a response must be that sent by the server
		MaxIdleConns:        o.Connections,
		MaxIdleConnsPerHost: o.Connections,
	}
	return h
}

// Prepare connects once. It sends no request, as a POST may have effects.
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
		return fmt.Errorf("connect to the API at %s: %w", u.Host, err)
	}
	return c.Close()
}

// Close closes the idle connections.
func (h *httpLoad) Close() error {
	h.transport.CloseIdleConnections()
	return nil
}

// Caller returns the caller of one goroutine's requests.
func (h *httpLoad) Caller(number, of int64) Caller {
	chance := newChance(&h.mix, number)
	return &httpCaller{
		chance: chance,
		load:   h,
		draws:  newKeyDraw(h.keyspace, number, of, chance),
		step:   of,
		args:   textArgs{prefix: h.keyspace.Prefix, seq: number},
	}
}

type httpCaller struct {
	chance
	load  *httpLoad
	draws *keyDraw
	step  int64 // between two {seq}
	args  textArgs
}

// parts are the instants of one request. The connection's goroutine sets firstByte, possibly after
// Call has returned.
type parts struct {
	begin, connected time.Time
	fresh            bool         // the connection was established for this request
	firstByte        atomic.Int64 // nanoseconds after begin; 0 = none was received
}

// Call sends a request and reads the response.
func (c *httpCaller) Call(ctx context.Context, _ int, user int64, tally []uint64) Result {
	p := &parts{}
	request, size, err := c.request(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			p.connected = time.Now()
			p.fresh = !info.Reused
		},
		GotFirstResponseByte: func() {
			p.firstByte.Store(int64(time.Since(p.begin)))
		},
	}), user)
	if err != nil {
		return Result{Outcome: Fail, Class: record.ClassOther}
	}
	p.begin = time.Now()
	answer, err := c.load.transport.RoundTrip(request)
	if p.fresh {
		tally[plan.TallyConnects]++
		tally[plan.TallyConnectMicros] += uint64(p.connected.Sub(p.begin).Microseconds())
	}
	if err != nil {
		if p.connected.IsZero() {
			return Result{Outcome: Fail, Class: record.ClassRefused}
		}
		return Result{
			Outcome:  Unknown,
			Class:    brokenClass(err),
			BytesOut: size,
		}
	}
	n, err := io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return Result{
			Outcome:  Unknown,
			Class:    brokenClass(err),
			BytesIn:  int(n),
			BytesOut: size,
		}
	}
	first := time.Duration(p.firstByte.Load())
	tally[plan.TallyFirstByteMicros] += uint64((first - p.connected.Sub(p.begin)).Microseconds())
	tally[plan.TallyBodyMicros] += uint64((time.Since(p.begin) - first).Microseconds())
	class := answer.StatusCode/100 - 1
	if class >= 0 && class < 5 {
		tally[plan.TallyStatus1xx+class]++
	}
	result := Result{BytesIn: int(n), BytesOut: size}
	if answer.StatusCode >= 400 {
		result.Outcome, result.Class = Fail, record.ClassOther
	}
	return result
}

// request returns the next request and the size of its body.
func (c *httpCaller) request(ctx context.Context, user int64) (*http.Request, int, error) {
	c.args.key, c.args.number, c.args.user = c.draws.draw(), c.below(c.load.keyspace.Keys), user
	text := c.load.body.with(&c.args)
	var body io.Reader
	if text != "" {
		body = strings.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, c.load.spec.MethodOrDefault(),
		c.load.url.with(&c.args), body)
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
	c.args.seq += c.step
	return request, len(text), nil
}
