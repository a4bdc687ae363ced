package plan

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Planned is what a load asks for over time, whatever Redis serves. The zero value is a load that
// is constant, with no planned end.
type Planned struct {
	// planned requests/s or users on average over [from, to), counted from the start; nil = constant
	Mean func(from, to time.Duration) float64
	Rate bool // requests/s; otherwise users
	// users: the pause between a reply and the next request
	ThinkTime time.Duration
	// when the load becomes another one, whose throughput is not known; ascending, from the start
	Changes []time.Duration
	InTurn  bool // operations are sent one after the other
	// of the load, from the start: what comes after it is drained; 0 = not known
	End time.Duration
}

// Since returns the last change until an instant; 0 without one.
func (p Planned) Since(at time.Duration) time.Duration {
	since := time.Duration(0)
	for _, change := range p.Changes {
		if change <= at {
			since = change
		}
	}
	return since
}

// Planned returns how the load changes over the measured time, for the analysis of its record.
func (p *Plan) Planned() Planned {
	planned := p.Shape.Planned()
	t := p.Turns()
	planned.InTurn = t != nil
	if t != nil && t.Each > 0 && !p.Shape.OpenLoop() { // the throughput is that of the operation
		for k := 1; k < t.Count; k++ {
			planned.Changes = append(planned.Changes, t.From+time.Duration(k)*t.Each)
		}
	}
	return planned
}

// Planned returns how the shape changes the load. It is constant for a search, whose rates are set
// during the run.
func (s Shape) Planned() Planned {
	if len(s.Stages) == 0 {
		return Planned{End: s.Length()}
	}
	schedule := NewSchedule(s)
	mean := func(from, to time.Duration) float64 {
		return (schedule.Integral(int64(to)) - schedule.Integral(int64(from))) / (to - from).Seconds()
	}
	return Planned{
		Mean:      mean,
		Rate:      s.OpenLoop(),
		ThinkTime: s.ThinkTime,
		End:       s.Length(),
	}
}

// Keyspace is the set of keys {prefix}0 .. {prefix}{Keys-1}.
type Keyspace struct {
	Prefix       string       `json:"prefix"`
	Keys         int64        `json:"keys"`
	Distribution Distribution `json:"distribution"`
	// of Zipf: s in P(k) ~ (1+k)^-s, above 0; 0 = ZipfExponent
	ZipfExponent float64 `json:"zipfExponent,omitempty"`
	// of Gaussian: its mean, as a share of the keys; nil = GaussianCentre
	Centre *float64 `json:"centre,omitempty"`
	// of Gaussian: its standard deviation, as a share of the keys; 0 = GaussianDeviation
	Deviation float64 `json:"deviation,omitempty"`
	// the key numbers are permuted, so that hot keys are no neighbours
	Scattered bool `json:"scattered,omitempty"`
	// SET every key before the start, at pipeline speed, split over the pods
	Prefill bool `json:"prefill,omitempty"`
	// the keys that the run can have created are removed after it, split over the pods
	Cleanup bool `json:"cleanup,omitempty"`
	// of prefilled keys, and of {key} in plain SET commands (PX is appended); 0 = none
	TTL time.Duration `json:"ttl,omitempty"`
}

// Parameters of distributions that are not set.
const (
	ZipfExponent      = 1.1
	GaussianCentre    = 0.5
	GaussianDeviation = 1.0 / 6
)

// Distribution is how keys are drawn.
type Distribution string

// The distributions.
const (
	Uniform  Distribution = "Uniform"
	Zipf     Distribution = "Zipf"     // over the key numbers: 0 is the hottest
	Gaussian Distribution = "Gaussian" // cut at the ends
	// 0, 1, 2, ... per source, each source beginning at its share
	Sequential Distribution = "Sequential"
)

// Values is the size of {value}: fixed where MinBytes == MaxBytes, else drawn uniformly.
type Values struct {
	MinBytes int `json:"minBytes"`
	MaxBytes int `json:"maxBytes"`
}

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
	if problem := h.placeholderProblem(); problem != "" {
		return problem
	}
	example := placeholders.Replace(strings.ReplaceAll(h.URL, "{key}", k.Prefix+"0"))
	u, err := url.Parse(example)
	switch {
	case err != nil:
		return "url: " + err.Error()
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Sprintf("url: %q must be http://host... or https://host...", h.URL)
	}
	problem := unknown("method", h.Method, httpMethods...)
	if problem != "" {
		return problem
	}
	for i, header := range h.Headers {
		if strings.ContainsAny(header.Value, "\r\n") {
			return fmt.Sprintf("headers[%d].value: must be one line", i)
		}
	}
	return ""
}

// placeholderProblem returns which field has what looks like a placeholder; "" = none.
func (h *HTTP) placeholderProblem() string {
	texts := []struct{ field, text string }{{"url", h.URL}, {"body", h.Body}}
	for i, header := range h.Headers {
		texts = append(texts, struct{ field, text string }{fmt.Sprintf("headers[%d].value", i), header.Value})
	}
	known := slices.DeleteFunc(slices.Clone(Placeholders), func(p Placeholder) bool { return p.Text == "{value}" })
	for _, t := range texts {
		if problem := placeholderProblem(t.text, known); problem != "" {
			return t.field + ": " + problem
		}
	}
	return ""
}

func (h *HTTP) operations() []Operation {
	m := h.MethodOrDefault()
	return []Operation{
		{
			Name:     strings.ToLower(m),
			Weight:   1,
			ReadOnly: m == http.MethodGet || m == http.MethodHead,
		},
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

// probeLeast is the least rate of a pod that probes, per second: a pod logs the gaps that are
// longer than 2 of its intervals, 80 ms, and one of the run is an overlap of those of all pods that
// probe.
const probeLeast = 25

// ProbePods is how many pods probe, each at an equal part of the probe's rate: the first ones, as
// many as leave each at least 25 requests a second.
// The servers see the same rate whatever the number of pods.
func (p *Plan) ProbePods() int {
	if p.Probe.Rate == 0 {
		return 0
	}
	return min(p.Pods, max(1, int(p.Probe.Rate/probeLeast)))
}
