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

// maxAnswer bounds the response to a pull in bytes: what was asked for, with one interval beyond
// it.
const maxAnswer = pullSize + agent.MaxBatch

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
func (s *Session) status(
	ctx context.Context, address string,
) (status agent.Status, sent, received int64, err error) {
	sent = s.now()
	err = s.call(ctx, http.MethodGet, address, agent.PathStatus, "", nil,
		func(response *http.Response) error {
			var body bytes.Buffer
			free, err := s.readBody(response, &body, s.largestStatus())
			defer free()
			received = s.now()
			if err != nil {
				return err
			}
			err = json.Unmarshal(body.Bytes(), &status)
			if err != nil {
				return fmt.Errorf("decode the status: %w", err)
			}
			return bound(&status)
		})
	if err != nil {
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

// pullSize is how many bytes a pull asks for; one interval may go beyond it. All pods have much to
// tell when the operator was away: that takes several pulls.
const pullSize = 64 << 10

// largestStatus is how many bytes the status of one pod may have: some of its text is kept.
func (s *Session) largestStatus() int {
	return min(1<<20, max(pullSize, statuses/len(s.pods)))
}

// statuses is how many bytes the statuses of all pods of a session may have.
const statuses = 64 << 20

// pull requests intervals and passes them to use, also with an error: the batch may contain
// complete frames all the same. The batch is only valid until use returns.
func (s *Session) pull(
	ctx context.Context, address, instance string, after, ack uint64, use func(batch, error),
) {
	query := "after=" + strconv.FormatUint(after, 10) + "&ack=" + strconv.FormatUint(ack, 10) +
		"&wait=" + min(s.cfg.PullEvery, agent.MaxWait, s.cfg.RequestTimeout/2).String() + "&instance=" +
		url.QueryEscape(instance) + "&max=" + strconv.Itoa(pullSize)
	used := false
	err := s.call(ctx, http.MethodGet, address, agent.PathIntervals, query, nil,
		func(response *http.Response) error {
			body, ok := s.bodies.Get().(*bytes.Buffer)
			if !ok {
				body = &bytes.Buffer{}
			}
			defer func() {
				if body.Cap() <= 2*smallBody { // most are
					s.bodies.Put(body)
				}
			}()
			free, err := s.readBody(response, body, maxAnswer)
			defer free()
			b, err := batchOf(response, body, err)
			use(b, err)
			used = true
			return nil
		})
	if !used {
		use(batch{}, err)
	}
}

// smallBody is how many bytes of a response are read whatever other pods send: more than an honest
// one has that is not of a very large Redis.
const smallBody = 128 << 10

// readBody reads a response into body. What is larger than smallBody is only read while few others
// are, in the whole process: a hostile load test has as many pods as it likes. free is to be called
// when the body is not needed any more.
func (s *Session) readBody(
	response *http.Response, body *bytes.Buffer, limit int,
) (free func(), err error) {
	free = func() {}
	body.Reset()
	// without copies, and with room to see the end
	body.Grow(int(max(0, min(response.ContentLength, int64(min(limit, smallBody))))) + bytes.MinRead)
	n, err := body.ReadFrom(io.LimitReader(response.Body, int64(min(limit, smallBody)+1)))
	if n > smallBody && err == nil {
		if free, err = s.cfg.Memory.readLarge(response.Request.Context()); err != nil {
			return func() {}, err
		}
		expected := int64(limit)
		if response.ContentLength >= 0 {
			expected = min(expected, response.ContentLength)
		}
		// at once: a buffer that doubles may get twice as large
		body.Grow(int(max(0, expected-n)) + bytes.MinRead)
		more, readErr := body.ReadFrom(io.LimitReader(response.Body, int64(limit+1)-n))
		n, err = n+more, readErr
	}
	if n > int64(limit) {
		err = fmt.Errorf("response is longer than %d bytes", limit)
	}
	return free, err
}

// batchOf is the response to a pull, also with an error.
func batchOf(response *http.Response, body *bytes.Buffer, err error) (batch, error) {
	b := batch{state: agent.State(response.Header.Get(agent.HeaderState)), frames: body.Bytes()}
	for name, value := range map[string]*uint64{
		agent.HeaderLastSeq: &b.lastSeq,
		agent.HeaderLost:    &b.lost,
	} {
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
	return s.call(ctx, http.MethodPost, address, path, "", body, func(*http.Response) error {
		return nil
	})
}

// call sends one request, and passes the response to read if it is a success.
func (s *Session) call(
	ctx context.Context, method, address, path, query string, body []byte,
	read func(*http.Response) error,
) error {
	if address == "" {
		return errors.New("its address is not known yet")
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.RequestTimeout)
	defer cancel()
	target := url.URL{
		Scheme:   "https",
		Host:     address,
		Path:     path,
		RawQuery: query,
	}
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

// each calls f concurrently for every pod that is not lost, released or excluded by leaveOut, and
// joins the errors, each with its pod.
func (s *Session) each(leaveOut func(p *pod) bool, f func(p *pod) error) error {
	s.mu.Lock()
	var pods []*pod
	for _, p := range s.pods {
		if !p.gone && !p.released && !leaveOut(p) {
			pods = append(pods, p)
		}
	}
	s.mu.Unlock()
	failed := make([]error, len(pods))
	done := make(chan struct{})
	for i, p := range pods {
		go func() {
			if err := f(p); err != nil {
				failed[i] = fmt.Errorf("pod %d: %w", p.index, err)
			}
			done <- struct{}{}
		}()
	}
	for range pods {
		<-done
	}
	return errors.Join(failed...)
}

func never(*pod) bool {
	return false
}

// foreign says that the agent at the address is none of ours.
func foreign(p *pod) bool {
	return p.problem == WrongAgent
}

// troubled says that the pod has no process that could follow: none was started, or what answers is
// another.
func troubled(p *pod) bool {
	return p.problem != ""
}
