package agent

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxBody is the longest request body, in bytes.
const maxBody = 4 << 10

// handler implements the protocol. Without the token every request is answered with 401, for any
// path.
func (p *process) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+PathStatus, p.serveStatus)
	mux.HandleFunc("POST "+PathStart, p.serveStart)
	mux.HandleFunc("POST "+PathStep, p.serveStep)
	mux.HandleFunc("GET "+PathIntervals, p.serveIntervals)
	mux.HandleFunc("POST "+PathStop, func(w http.ResponseWriter, r *http.Request) {
		p.stop(r.URL.Query().Get("verify") == "true")
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST "+PathCleanup, func(w http.ResponseWriter, r *http.Request) {
		answer(w, p.cleanUp(context.WithoutCancel(r.Context())))
	})
	mux.HandleFunc("POST "+PathRelease, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, p.release())
	})
	// hashed, so that the time of the comparison does not depend on the length either
	want := sha256.Sum256([]byte(p.cfg.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(token))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 || !ok {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		mux.ServeHTTP(w, r)
	})
}

func (p *process) serveStatus(w http.ResponseWriter, _ *http.Request) {
	body, err := json.Marshal(p.status())
	if err != nil {
		http.Error(w, "status cannot be encoded", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(body) // the caller detects a broken connection
}

func (p *process) serveStart(w http.ResponseWriter, r *http.Request) {
	var request StartRequest
	if !decode(r, &request) || request.At <= 0 {
		http.Error(w, "not a start request", http.StatusBadRequest)
		return
	}
	answer(w, p.setStart(request))
}

func (p *process) serveStep(w http.ResponseWriter, r *http.Request) {
	var request StepRequest
	if !decode(r, &request) || request.At <= 0 || request.Rate < 0 {
		http.Error(w, "not a step", http.StatusBadRequest)
		return
	}
	answer(w, p.step(request))
}

// decode reads a request's body, strictly.
func decode(r *http.Request, into any) bool {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	return decoder.Decode(into) == nil
}

func (p *process) serveIntervals(w http.ResponseWriter, r *http.Request) {
	request, err := parsePull(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	timer := time.NewTimer(request.wait)
	defer timer.Stop()
	expired := request.wait == 0
	for {
		b, err := p.nextBatch(request)
		if err != nil {
			answer(w, err)
			return
		}
		if len(b.frames) > 0 || expired || b.state.Ended() {
			b.write(w)
			return
		}
		select {
		case <-b.news:
		case <-timer.C:
			expired = true
		case <-r.Context().Done():
			return
		}
	}
}

// batch is the response to a pull. news is closed when there is more than that.
type batch struct {
	frames     []frame
	size       int
	state      State
	last, lost uint64
	news       <-chan struct{}
}

// nextBatch returns the intervals after the requested one, and removes the acknowledged ones.
func (p *process) nextBatch(request pull) (batch, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if request.instance != "" && request.instance != p.instance {
		return batch{}, errConflict("the request is for another process: the pod has restarted")
	}
	if request.after > p.outbox.last {
		return batch{}, errConflict("after is beyond the end of the record")
	}
	p.outbox.acknowledge(request.ack)
	frames, size := p.outbox.after(request.after, request.max)
	return batch{
		frames: frames,
		size:   size,
		state:  p.state,
		last:   p.outbox.last,
		lost:   p.outbox.lost,
		news:   p.news,
	}, nil
}

func (b *batch) write(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Content-Type", "application/octet-stream")
	// so that the caller detects a truncated response
	header.Set("Content-Length", strconv.Itoa(b.size))
	header.Set(HeaderState, string(b.state))
	header.Set(HeaderLastSeq, strconv.FormatUint(b.last, 10))
	header.Set(HeaderLost, strconv.FormatUint(b.lost, 10))
	for _, f := range b.frames {
		if _, err := w.Write(f.data); err != nil {
			return
		}
	}
}

// answer is 204, or 409 with the reason.
func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// pull is a request for intervals.
type pull struct {
	after, ack uint64
	wait       time.Duration
	instance   string
	max        int // bytes
}

func parsePull(query url.Values) (pull, error) {
	request := pull{instance: query.Get("instance"), max: MaxBatch}
	var err error
	for name, into := range map[string]*uint64{"after": &request.after, "ack": &request.ack} {
		if text := query.Get(name); text != "" {
			if *into, err = strconv.ParseUint(text, 10, 63); err != nil {
				return pull{}, errors.New(name + " is not a sequence number")
			}
		}
	}
	if text := query.Get("wait"); text != "" {
		if request.wait, err = time.ParseDuration(text); err != nil || request.wait < 0 {
			return pull{}, errors.New("wait is not a duration")
		}
	}
	if text := query.Get("max"); text != "" {
		if request.max, err = strconv.Atoi(text); err != nil || request.max < 1 {
			return pull{}, errors.New("max is not a number of bytes")
		}
	}
	if request.ack > request.after {
		return pull{}, errors.New("ack is beyond after")
	}
	request.max = min(request.max, MaxBatch)
	request.wait = min(request.wait, MaxWait)
	return request, nil
}
