// Package powerhook asks a webhook, which the administrator of the operator has named, to switch the
// power of nodes: docs/faults/nodeloss.md has its protocol.
package powerhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/egress"
	"github.com/redquake/redquake/internal/redact"
)

// Bounds of one request.
const (
	timeout   = 8 * time.Second // less than a call of an injector may take
	maxAnswer = 4 << 10         // bytes of an answer that are read
	maxQuote  = 200             // bytes of it that an error quotes
	maxError  = 500             // bytes of an error
)

// Power is what a node is to have.
type Power string

// The two.
const (
	On  Power = "On"
	Off Power = "Off"
)

// Request is the body of a request.
type Request struct {
	Node       string `json:"node"`
	ProviderID string `json:"providerID,omitempty"` // spec.providerID of the node
	Power      Power  `json:"power"`
	Fault      Fault  `json:"fault"`
	// of Off: when the hook is to switch it on again by itself, in RFC 3339
	Deadline string `json:"deadline,omitempty"`
}

// Fault is the RedisFault for which the power is switched.
type Fault struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// ErrUnsent is that a request has not reached the hook.
var ErrUnsent = errors.New("the power hook was not reached")

// Refused is the answer of a hook that does not do what it was asked, and would not the next time.
type Refused struct {
	Status int
	Says   string
}

func (r *Refused) Error() string {
	return "the power hook refuses: " + answered(r.Status, r.Says)
}

// Gone reports whether the hook says that there is no such machine any more.
func Gone(err error) bool {
	refused, is := errors.AsType[*Refused](err)
	return is && refused.Status == http.StatusGone
}

// Refuses reports whether the hook says that it does not do what it was asked.
func Refuses(err error) bool {
	_, is := errors.AsType[*Refused](err)
	return is
}

// Undone reports whether it is certain that the hook has not done, and will not do, what it was
// asked. After a timeout it is not.
func Undone(err error) bool {
	return Refuses(err) || errors.Is(err, ErrUnsent)
}

// Hook is the webhook.
type Hook struct {
	address *url.URL
	files   string
	// nil = over the network
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// The files of a hook, in its folder. Each may be missing. They are read for each request, as they
// may be renewed.
const (
	tokenFile = "token"  // sent as a bearer token
	caFile    = "ca.crt" // that sign its certificate, in PEM; without it those of the system
)

// New returns the hook at a URL. files is the folder with what it needs; "" = nothing.
func New(address, files string) (*Hook, error) {
	at, err := url.Parse(address)
	if err != nil || at.Hostname() == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, errors.New("it is no URL that begins with http:// or https:// and has a host")
	}
	if _, err := egress.ParseHosts(at.Hostname()); err != nil {
		return nil, err
	}
	return &Hook{address: at, files: files}, nil
}

// Switch asks the hook. It has done it, or will, if the error is nil.
func (h *Hook) Switch(ctx context.Context, asked Request) error {
	err := h.send(ctx, asked)
	if err != nil {
		return fmt.Errorf("switch power of node %s %s: %w", asked.Node, strings.ToLower(string(asked.Power)), err)
	}
	return nil
}

func (h *Hook) send(ctx context.Context, asked Request) error {
	body, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	token, secure, err := h.read()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsent, err)
	}
	way := egress.Way{
		Hosts: egress.Hosts{h.address.Hostname()},
		Flag:  "--power-hook-url",
		Dial:  h.Dial,
	}
	transport, err := way.To(h.address, secure)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsent, err)
	}
	defer transport.CloseIdleConnections()
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	connected := false
	traced := httptrace.WithClientTrace(limited, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected = true },
	})
	request, err := http.NewRequestWithContext(traced, http.MethodPost, h.address.String(), bytes.NewReader(body))
	if err != nil {
		return hidden(err, token)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "redquake")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: transport, CheckRedirect: egress.NoRedirect}
	response, err := client.Do(request)
	switch {
	case err == nil:
		defer response.Body.Close()
		return judge(response, token)
	case ctx.Err() != nil:
		return ctx.Err()
	case !connected:
		return fmt.Errorf("%w: %w", ErrUnsent, hidden(err, token))
	case limited.Err() != nil:
		return fmt.Errorf("the power hook has not answered within %s", timeout)
	}
	return hidden(err, token)
}

// judge is nil for a hook that does what it was asked.
func judge(response *http.Response, token string) error {
	status := response.StatusCode
	if status/100 == 2 {
		return nil
	}
	// what was read until an error is enough
	said, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	text := quote(redact.Text(string(said), token), maxQuote)
	passes := []int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}
	if status/100 == 4 && !slices.Contains(passes, status) {
		return &Refused{Status: status, Says: text}
	}
	return errors.New("the power hook fails: " + answered(status, text))
}

func answered(status int, says string) string {
	text := strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
	if says != "" {
		text += ": " + says
	}
	return text
}

// read reads the token, and whom to trust.
func (h *Hook) read() (token string, secure *tls.Config, err error) {
	if h.files == "" {
		return "", nil, nil
	}
	text, err := optional(filepath.Join(h.files, tokenFile))
	if err != nil {
		return "", nil, err
	}
	token = strings.TrimSpace(text)
	trusted, err := optional(filepath.Join(h.files, caFile))
	if err != nil || trusted == "" {
		return token, nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(trusted)) {
		return "", nil, fmt.Errorf("%s has no certificate in PEM", filepath.Join(h.files, caFile))
	}
	return token, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}

// optional is the content of a file; "" where there is none.
func optional(name string) (string, error) {
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(content), err
}

// hidden is an error without the URL, which may hold a secret, and the token.
func hidden(err error, token string) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err // the other members are the URL
	}
	return errors.New(quote(redact.Text(err.Error(), token), maxError))
}

// quote is the begin of a text, in one line.
func quote(text string, most int) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// Deadline is an instant as a request has it.
func Deadline(at time.Time) string {
	return at.UTC().Truncate(time.Second).Format(time.RFC3339)
}
