package notify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/egress"
	"github.com/redquake/redquake/internal/redact"
)

// Bounds of one attempt.
const (
	sendTimeout = 10 * time.Second
	maxAnswer   = 4 << 10 // bytes of an answer that are read
	maxQuote    = 200     // bytes of it that an error quotes
	maxError    = 500     // bytes of an error
	maxURL      = 2048
	longestWord = 12 // letters
)

// Client sends notifications to hosts that are allowed.
type Client struct {
	Hosts egress.Hosts
	// nil = over the network
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// of an attempt; 0 = 10 s
	Timeout time.Duration
}

// ParseURL checks the URL of a webhook, which is a secret: its error shows nothing of it.
func ParseURL(text string) (*url.URL, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxURL {
		return nil, fmt.Errorf("the URL is longer than %d bytes", maxURL)
	}
	at, err := url.Parse(text)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, errors.New("it is no URL that begins with http:// or https:// and has a host")
	}
	return at, nil
}

// Check reports whether notifications may be sent to a URL.
func (c *Client) Check(at *url.URL) error {
	return c.way().Check(at.Hostname())
}

func (c *Client) way() egress.Way {
	return egress.Way{
		Hosts: c.Hosts,
		Flag:  "--notify-hosts",
		Dial:  c.Dial,
	}
}

// Send posts a body, as JSON if it is. The server has accepted it if the error is nil. id is the
// same for each attempt to send the same notification. Errors hold nothing of the URL.
func (c *Client) Send(ctx context.Context, at *url.URL, id string, body []byte) error {
	timeout := cmp.Or(c.Timeout, sendTimeout)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	transport, err := c.way().To(at, nil)
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(),
		bytes.NewReader(body))
	if err != nil {
		return hidden(err, at)
	}
	request.Header.Set("Content-Type", "text/plain; charset=utf-8")
	if json.Valid(body) {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("Idempotency-Key", id)
	request.Header.Set("User-Agent", "redquake")
	client := &http.Client{Transport: transport, CheckRedirect: egress.NoRedirect}
	response, err := client.Do(request)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("no answer within %s", timeout)
		}
		return hidden(err, at)
	}
	defer response.Body.Close()
	if response.StatusCode/100 == 2 {
		return nil
	}
	// what was read until an error is enough
	said, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	text := strings.TrimSpace(fmt.Sprintf("the server answers %d %s", response.StatusCode,
		http.StatusText(response.StatusCode)))
	quote := shortened(hide(string(said), at), maxQuote)
	if quote != "" {
		text += ": " + quote
	}
	return errors.New(text)
}

// hidden is an error without the URL.
func hidden(err error, at *url.URL) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err // the other members are the URL
	}
	return errors.New(shortened(hide(err.Error(), at), maxError))
}

// hide removes a URL and the secrets in it from a text: a server may send back what it has
// received.
func hide(text string, at *url.URL) string {
	whole := []string{at.String(), at.Host, at.Hostname(), at.Path, at.EscapedPath(), at.RawQuery}
	slices.SortFunc(whole, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range whole {
		if len(secret) > len("/a/") {
			text = strings.ReplaceAll(text, secret, redact.Hidden)
		}
	}
	parts := append(strings.Split(at.Path, "/"), strings.Split(at.EscapedPath(), "/")...)
	for _, values := range at.Query() {
		parts = append(parts, values...)
	}
	if user := at.User; user != nil {
		password, _ := user.Password()
		parts = append(parts, user.Username(), password,
			base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	return redact.Text(text, slices.DeleteFunc(parts, isWord)...)
}

// isWord reports whether a part of a URL is a word, such as services, and not a token.
func isWord(part string) bool {
	return len(part) <= longestWord && strings.Trim(part, "abcdefghijklmnopqrstuvwxyz-") == ""
}

// shortened is the begin of a text, in one line.
func shortened(text string, most int) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
