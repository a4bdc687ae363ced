package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/agent"
)

// maxAnswer bounds a response in bytes: a batch, with one interval beyond its limit.
const maxAnswer = 2 * agent.MaxBatch

// refusal is a response with a status other than success.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string {
	if r.text == "" {
		return fmt.Sprintf("responded with %d %s", r.code, http.StatusText(r.code))
	}
	return fmt.Sprintf("responded with %d: %s", r.code, r.text)
}

// conflict reports whether the agent rejected a request because of its state.
func conflict(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.code == http.StatusConflict
}

// status reads the status, and returns the local instants between which it was created.
func (s *Session) status(ctx context.Context, address string) (status agent.Status, sent, received int64, err error) {
	var body []byte
	sent = s.now()
	err = s.call(ctx, http.MethodGet, address, agent.PathStatus, "", nil, func(response *http.Response) (err error) {
		body, err = io.ReadAll(io.LimitReader(response.Body, int64(s.largestStatus())))
		return err
	})
	received = s.now()
	if err != nil {
		return agent.Status{}, 0, 0, err
	}
	if err := json.Unmarshal(body, &status); err != nil {
		return agent.Status{}, 0, 0, fmt.Errorf("decode the status: %w", err)
	}
	if err := bound(&status); err != nil {
		return agent.Status{}, 0, 0, err
	}
	return status, sent, received, nil
}

// batch is the response to a pull.
type batch struct {
	state   agent.State
	lastSeq uint64
	lost    uint64
	frames  []byte // the last frame is incomplete if the connection broke
}

// pullsAtOnce is how many bytes the answers to pulls from all pods may take at the same time. All pods have much to tell when the operator was away.
const pullsAtOnce = 64 << 20

// largestPull is how many bytes an answer of one pod may have.
func (s *Session) largestPull() int { return min(agent.MaxBatch, max(64<<10, pullsAtOnce/len(s.pods))) }

// largestStatus is how many bytes the status of one pod may have: some of its text is kept.
func (s *Session) largestStatus() int { return min(1<<20, s.largestPull()) }

// pull requests intervals and passes them to use, also with an error: the batch may contain complete frames all the same. The batch is only valid
// until use returns.
func (s *Session) pull(ctx context.Context, address, instance string, after, ack uint64, use func(batch, error)) {
	query := "after=" + strconv.FormatUint(after, 10) + "&ack=" + strconv.FormatUint(ack, 10) +
		"&wait=" + min(s.cfg.PullEvery, agent.MaxWait, s.cfg.RequestTimeout/2).String() + "&instance=" + url.QueryEscape(instance) + "&max=" + strconv.Itoa(s.largestPull())
	used := false
	err := s.call(ctx, http.MethodGet, address, agent.PathIntervals, query, nil, func(response *http.Response) error {
		body, ok := s.bodies.Get().(*bytes.Buffer)
		if !ok {
			body = &bytes.Buffer{}
		}
		defer func() {
			if body.Cap() <= agent.MaxBatch { // most are small
				s.bodies.Put(body)
			}
		}()
		b, err := readBatch(response, body, s.largestPull())
		use(b, err)
		used = true
		return nil
	})
	if !used {
		use(batch{}, err)
	}
}

// readBatch reads a response to a pull, which is expected to have so many bytes.
func readBatch(response *http.Response, body *bytes.Buffer, expected int) (batch, error) {
	body.Reset()
	body.Grow(int(max(0, min(response.ContentLength, int64(expected)))) + bytes.MinRead) // without copies, and with room to see the end
	limit := int64(expected + agent.MaxBatch)
	n, err := body.ReadFrom(io.LimitReader(response.Body, limit+1))
	if n > limit {
		err = fmt.Errorf("response is longer than %d bytes", limit)
	}
	b := batch{state: agent.State(response.Header.Get(agent.HeaderState)), frames: body.Bytes()}
	for name, value := range map[string]*uint64{agent.HeaderLastSeq: &b.lastSeq, agent.HeaderLost: &b.lost} {
		var parseErr error
		if *value, parseErr = strconv.ParseUint(response.Header.Get(name), 10, 63); parseErr != nil {
			return batch{}, fmt.Errorf("header %s: %w", name, parseErr)
		}
	}
	return b, err
}

// postStart sends a start instant on the pod's clock.
func (s *Session) postStart(ctx context.Context, address string, request agent.StartRequest) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encode the start: %w", err)
	}
	return s.post(ctx, address, agent.PathStart, body)
}

// post sends a request whose response has no body.
func (s *Session) post(ctx context.Context, address, path string, body []byte) error {
	return s.call(ctx, http.MethodPost, address, path, "", body, func(*http.Response) error { return nil })
}

// call sends one request, and passes the response to read if it is a success.
func (s *Session) call(ctx context.Context, method, address, path, query string, body []byte, read func(*http.Response) error) error {
	if address == "" {
		return errors.New("its address is not known yet")
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.RequestTimeout)
	defer cancel()
	target := url.URL{Scheme: "https", Host: address, Path: path, RawQuery: query}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("create the request %s %s: %w", method, path, err)
	}
	request.Header.Set("Authorization", "Bearer "+s.cfg.Credentials.Token)
	response, err := s.transport.RoundTrip(request) // no redirects, no cookies
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 512)) // as much as can be read
		return &refusal{response.StatusCode, strings.TrimSpace(string(text))}
	}
	return read(response)
}

// pause waits for d; it returns false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
