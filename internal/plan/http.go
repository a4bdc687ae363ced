package plan

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// HTTP is requests to the API of an application that uses the Redis under test. URL, body and the
// values of headers may contain the placeholders {key}, {int}, {user} and {seq} of a command.
//
// A response with status 400 or above is a failure. Redirects are not followed. The body of the
// response is read completely.
// The protocol is HTTP/1.1. Go's client repeats a GET or HEAD on a new connection if a kept
// connection was closed; the repetition is not counted.
type HTTP struct {
	URL     string   `json:"url"`              // http or https, with a host
	Method  string   `json:"method,omitempty"` // GET (if empty), HEAD, POST, PUT, PATCH or DELETE
	Body    string   `json:"body,omitempty"`
	Headers []Header `json:"headers,omitempty"`
	// connections are reused; otherwise each request opens a new one
	KeepAlive bool `json:"keepAlive"`
}

// Header is a header of each request. Host sets the request's host.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// The tallies of http. The means of the parts of the latency are connectMicros / connects,
// firstByteMicros / responses and bodyMicros / responses, where responses is the sum of the status
// classes.
const (
	TallyStatus1xx     = iota // followed by the other classes
	TallyConnects      = iota + 4
	TallyConnectMicros // to open these connections, including name resolution and TLS handshake
	// from the begin of the request on its connection to the first byte of the response
	TallyFirstByteMicros
	TallyBodyMicros // from there to the end of the response
)

var httpTallies = []string{
	"status1xx", "status2xx", "status3xx", "status4xx", "status5xx",
	"connects", "connectMicros", "firstByteMicros", "bodyMicros",
}

var httpMethods = []string{
	"", http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut,
	http.MethodPatch, http.MethodDelete,
}

// placeholders replaces the placeholders by examples, to validate the URL.
var placeholders = strings.NewReplacer("{int}", "0", "{user}", "0", "{seq}", "0")

func (h *HTTP) check(k *Keyspace) string {
	example := placeholders.Replace(strings.ReplaceAll(h.URL, "{key}", k.Prefix+"0"))
	u, err := url.Parse(example)
	switch {
	case err != nil:
		return "url: " + err.Error()
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Sprintf("url: %q must be http://host... or https://host...", h.URL)
	}
	if problem := unknown("method", h.Method, httpMethods...); problem != "" {
		return problem
	}
	for i, header := range h.Headers {
		if strings.ContainsAny(header.Value, "\r\n") {
			return fmt.Sprintf("headers[%d].value: must be one line", i)
		}
	}
	return ""
}

func (h *HTTP) operations() []Operation {
	m := h.MethodOrDefault()
	return []Operation{
		{Name: strings.ToLower(m), Weight: 1, ReadOnly: m == http.MethodGet || m == http.MethodHead},
	}
}

// MethodOrDefault returns the effective method.
func (h *HTTP) MethodOrDefault() string {
	if h.Method == "" {
		return http.MethodGet
	}
	return h.Method
}

func (h *HTTP) tallies() []string {
	return httpTallies
}
