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

// maxAnswer bounds an answer in bytes: a batch, and one interval that goes over it.
const maxAnswer = 4 * agent.MaxBatch

// refusal is an answer with a status other than success.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string {
	if r.text == "" {
		return fmt.Sprintf("answered %d %s", r.code, http.StatusText(r.code))
	}
	return fmt.Sprintf("answered %d: %s", r.code, r.text)
}

// conflict says that the agent does not take a request as things stand.
func conflict(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.code == http.StatusConflict
}

// status asks for the status, and says between which local instants it was made.
func (s *Session) status(ctx context.Context, address string) (status agent.Status, sent, received int64, err error) {
	var body bytes.Buffer
	sent = s.now()
	_, err = s.call(ctx, http.MethodGet, address, agent.PathStatus, "", nil, &body)
	received = s.now()
	if err != nil {
		return agent.Status{}, 0, 0, err
	}
	if err := json.Unmarshal(body.Bytes(), &status); err != nil {
		return agent.Status{}, 0, 0, fmt.Errorf("status cannot be read: %w", err)
	}
	return status, sent, received, nil
}

// batch is an answer to a pull.
type batch struct {
	state   agent.State
	lastSeq uint64
	lost    uint64
	frames  []byte // may end within a frame if the connection broke
}

// pull asks for intervals. With an error the batch may still hold whole frames.
func (s *Session) pull(ctx context.Context, address, instance string, after, ack uint64, into *bytes.Buffer) (batch, error) {
	query := "after=" + strconv.FormatUint(after, 10) + "&ack=" + strconv.FormatUint(ack, 10) +
		"&wait=" + min(s.cfg.PullEvery, agent.MaxWait, s.cfg.RequestTimeout/2).String() + "&instance=" + url.QueryEscape(instance)
	header, err := s.call(ctx, http.MethodGet, address, agent.PathIntervals, query, nil, into)
	if header == nil {
		return batch{}, err
	}
	b := batch{state: agent.State(header.Get(agent.HeaderState)), frames: into.Bytes()}
	for name, value := range map[string]*uint64{agent.HeaderLastSeq: &b.lastSeq, agent.HeaderLost: &b.lost} {
		var parseErr error
		if *value, parseErr = strconv.ParseUint(header.Get(name), 10, 63); parseErr != nil {
			return batch{}, fmt.Errorf("header %s: %w", name, parseErr)
		}
	}
	return b, err
}

// postStart sends a start instant on the pod's clock.
func (s *Session) postStart(ctx context.Context, address string, request agent.StartRequest) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	return s.post(ctx, address, agent.PathStart, body)
}

// post makes a request that has no answer but its code.
func (s *Session) post(ctx context.Context, address, path string, body []byte) error {
	_, err := s.call(ctx, http.MethodPost, address, path, "", body, &bytes.Buffer{})
	return err
}

// call makes one request. The answer's body is read into into, which may have grown.
func (s *Session) call(ctx context.Context, method, address, path, query string, body []byte, into *bytes.Buffer) (http.Header, error) {
	if address == "" {
		return nil, errors.New("no address is known yet")
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.RequestTimeout)
	defer cancel()
	target := url.URL{Scheme: "https", Host: address, Path: path, RawQuery: query}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.cfg.Credentials.Token)
	response, err := s.transport.RoundTrip(request) // no redirects, no cookies
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 512)) // what there is of it
		return nil, &refusal{response.StatusCode, strings.TrimSpace(string(text))}
	}
	into.Reset()
	n, err := into.ReadFrom(io.LimitReader(response.Body, maxAnswer+1))
	if n > maxAnswer {
		return response.Header, fmt.Errorf("answer is longer than %d bytes", maxAnswer)
	}
	return response.Header, err
}

// pause waits, and says false when ctx ended first.
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
