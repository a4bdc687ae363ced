package plan

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
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
	TallyStatus1xx       = iota // the classes follow one another
	TallyConnects        = iota + 4
	TallyConnectMicros   // to make those connections: name resolution and TLS handshake included
	TallyFirstByteMicros // from the request's beginning on its connection to the answer's first byte
	TallyBodyMicros      // from there to the answer's end
)

var httpTallies = []string{"status1xx", "status2xx", "status3xx", "status4xx", "status5xx", "connects", "connectMicros", "firstByteMicros", "bodyMicros"}

var httpMethods = []string{"", http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// placeholders puts an example in the places that any URL may have.
var placeholders = strings.NewReplacer("{int}", "0", "{user}", "0", "{seq}", "0")

func (h *HTTP) check(k *Keyspace) string {
	shown := placeholders.Replace(strings.ReplaceAll(h.URL, "{key}", k.Prefix+"0"))
	u, err := url.Parse(shown)
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
	return []Operation{{Name: strings.ToLower(m), Weight: 1, ReadOnly: m == http.MethodGet || m == http.MethodHead}}
}

// MethodOrDefault is the method that is used.
func (h *HTTP) MethodOrDefault() string {
	if h.Method == "" {
		return http.MethodGet
	}
	return h.Method
}

func (h *HTTP) tallies() []string { return httpTallies }
