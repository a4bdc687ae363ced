// Package prometheus evaluates queries whose results are limited. A server may be slow, hostile or
// another one than expected: what it can cost is bounded.
package prometheus

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/redquake/redquake/internal/egress"
	"github.com/redquake/redquake/internal/redact"
)

// Limits of what a server may send.
const (
	maxBody  = 1 << 20
	maxError = 4 << 10
)

// Errors of a query.
var (
	errTooLong = fmt.Errorf("the answer is longer than %d bytes", maxBody)
	errNoData  = errors.New("the query returns no data")
	errNaN     = errors.New("the query returns NaN")
)

// Server is a Prometheus and the login to it.
type Server struct {
	URL                string
	Token              string // a bearer token; "" = none
	Username, Password string // "" = none
	TLS                *tls.Config
}

// Client evaluates queries on servers that are allowed.
type Client struct {
	Hosts egress.Hosts
	// nil = over the network
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Range is the least and the greatest element of a result.
type Range struct{ Least, Greatest float64 }

// Query returns the result of a query. Its errors hold nothing of the login.
func (c *Client) Query(
	ctx context.Context, s Server, query string, timeout time.Duration,
) (Range, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	transport, err := c.transport(s)
	if err != nil {
		return Range{}, err
	}
	defer transport.CloseIdleConnections()
	to, err := api.NewClient(api.Config{Address: s.URL, Client: &http.Client{
		Transport:     bounded{transport, s},
		CheckRedirect: egress.NoRedirect,
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

// Check reports whether queries may be sent to a server. Its error names the host, and the flag
// that allows hosts.
func (c *Client) Check(server string) error {
	at, err := url.Parse(server)
	if err != nil {
		return errors.New("the URL is invalid")
	}
	if err := c.way().Check(at.Hostname()); err != nil {
		return fmt.Errorf("host %s: %w", at.Hostname(), err)
	}
	return nil
}

// transport connects to an allowed host only.
func (c *Client) transport(s Server) (*http.Transport, error) {
	if err := c.Check(s.URL); err != nil {
		return nil, err
	}
	at, err := url.Parse(s.URL)
	if err != nil {
		return nil, errors.New("the URL is invalid")
	}
	return c.way().To(at, s.TLS)
}

func (c *Client) way() egress.Way {
	return egress.Way{
		Hosts: c.Hosts,
		Flag:  "--prometheus-hosts",
		Dial:  c.Dial,
	}
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
	response.Body = &egress.Limited{
		ReadCloser: response.Body,
		Left:       maxBody,
		TooLong:    errTooLong,
	}
	return response, nil
}

// causeOf is why a query failed, without the URL.
func causeOf(ctx context.Context, err error, timeout time.Duration) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", timeout)
	}
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

// hide removes what belongs to the login from an error: a server may send back what it has
// received.
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
		return Range{}, fmt.Errorf("the query returns a %s instead of a scalar or an instant vector",
			typeOf(value))
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
