package agent

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sort"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// Times of requests to a sidecar.
const (
	sidecarTimeout = 2 * time.Second        // of one request
	sidecarEvery   = 250 * time.Millisecond // between two requests
)

// Sidecar is a container beside the agent through which its connections go, such as the proxy of a
// service mesh.
type Sidecar struct {
	// answers with a status of 2xx once the network works; "" = it works from the start
	ReadyURL string
	QuitURL  string // ends the sidecar by POST; "" = it ends by itself
}

// await returns once the sidecar is ready, or with the error of ctx. say reports why it waits.
func (s Sidecar) await(ctx context.Context, say func(string)) error {
	if s.ReadyURL == "" {
		return nil
	}
	every := time.NewTicker(sidecarEvery)
	defer every.Stop()
	for {
		err := ask(ctx, http.MethodGet, s.ReadyURL)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		say(fmt.Sprintf("waits for the sidecar: %v", err))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-every.C:
		}
	}
}

// Quit ends the sidecar: without that, the pod of a Job stays although its load has ended. ctx may
// be over.
func (s Sidecar) Quit(ctx context.Context, logger *slog.Logger) {
	if s.QuitURL == "" {
		return
	}
	err := ask(context.WithoutCancel(ctx), http.MethodPost, s.QuitURL)
	if err != nil {
		logger.Error("failed to end the sidecar: the pod stays until its deadline", "error", err.Error())
		return
	}
	logger.Info("ended the sidecar")
}

func ask(ctx context.Context, method, url string) error {
	ctx, cancel := context.WithTimeout(ctx, sidecarTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return err
	}
	// A connection of its own: the sidecar ends.
	client := http.Client{
		Transport: &http.Transport{DisableKeepAlives: true},
		// only the pod itself is asked
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s %q: %s", method, url, response.Status)
	}
	return nil
}

// frame is one encoded interval of the protocol: uvarint length, then record.AppendInterval's
// bytes.
type frame struct {
	seq  uint64
	data []byte
}

// outbox keeps encoded intervals until they are acknowledged, up to a limit in bytes. The caller
// locks.
type outbox struct {
	frames  []frame // ascending by seq
	bytes   int     // of all frames
	limit   int     // in bytes; beyond it the oldest frames are dropped, but never the newest
	last    uint64  // newest seq ever appended
	lost    uint64  // frames dropped before they were acknowledged
	scratch []byte
}

// append adds an interval; false if it is not newer than the last one and was ignored.
func (r *outbox) append(interval *record.Interval) bool {
	seq := uint64(interval.Index) + 1
	if interval.Index < 0 || seq <= r.last {
		return false
	}
	r.scratch = record.AppendInterval(r.scratch[:0], interval)
	data := make([]byte, 0, binary.MaxVarintLen32+len(r.scratch))
	data = binary.AppendUvarint(data, uint64(len(r.scratch)))
	data = append(data, r.scratch...)
	r.frames = append(r.frames, frame{seq, data})
	r.bytes += len(data)
	r.last = seq

	drop := 0
	for r.bytes > r.limit && drop < len(r.frames)-1 {
		r.bytes -= len(r.frames[drop].data)
		drop++
	}
	r.lost += uint64(drop)
	r.frames = slices.Delete(r.frames, 0, drop)
	return true
}

// acknowledge removes the frames up to seq.
func (r *outbox) acknowledge(seq uint64) {
	n := r.from(seq)
	for _, f := range r.frames[:n] {
		r.bytes -= len(f.data)
	}
	r.frames = slices.Delete(r.frames, 0, n)
}

// after returns frames newer than seq, oldest first, up to about max bytes, and their size. The
// data must not be modified.
func (r *outbox) after(seq uint64, max int) (batch []frame, size int) {
	start := r.from(seq)
	end := start
	for end < len(r.frames) && (end == start || size+len(r.frames[end].data) <= max) {
		size += len(r.frames[end].data)
		end++
	}
	return slices.Clone(r.frames[start:end]), size
}

// from returns the position of the first frame newer than seq.
func (r *outbox) from(seq uint64) int {
	return sort.Search(len(r.frames), func(i int) bool { return r.frames[i].seq > seq })
}
