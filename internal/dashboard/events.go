package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
)

// objectEvents streams the revisions of an object's page.
func (h *Handler) objectEvents(w http.ResponseWriter, r *http.Request, who user.Info) error {
	key, err := keyOf(r)
	if err != nil {
		return err
	}
	err = h.require(r.Context(), who, ofPage(key)...)
	if err != nil {
		return err
	}
	return h.stream(w, r, func(ctx context.Context) (Revision, error) {
		return h.Source.Revision(ctx,
			key)
	})
}

// listEvents streams the revisions of a list.
func (h *Handler) listEvents(w http.ResponseWriter, r *http.Request, who user.Info) error {
	namespace := r.PathValue("namespace")
	return h.stream(w, r, func(ctx context.Context) (Revision, error) {
		list, err := h.visible(ctx, who, namespace)
		if err != nil {
			return Revision{}, err
		}
		return Revision{ID: list.Revision}, nil
	})
}

// stream sends an event for each revision that differs from the one before, at most one per
// Limits.Every, until what it is about is over or gone, the reader is gone, or Limits.StreamFor has
// passed.
func (h *Handler) stream(
	w http.ResponseWriter, r *http.Request, revision func(context.Context) (Revision, error),
) error {
	last, err := revision(r.Context())
	if err != nil {
		return err
	}
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		return &statusError{
			http.StatusServiceUnavailable,
			"Too many pages are followed at the same time: this one has to be loaded again by hand.",
		}
	}
	s := &eventStream{
		ResponseController: http.NewResponseController(w),
		w:                  w,
		within:             h.Limits.Write,
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for nginx in front of it
	if r.Method == http.MethodHead {
		return nil
	}
	event := "revision"
	if last.Over {
		event = "over"
	}
	if !s.send("retry: 3000\nevent: %s\ndata: %s\n\n", event, last.ID) || last.Over {
		return nil
	}
	h.follow(r.Context(), s, last.ID, revision)
	return nil
}

func (h *Handler) follow(
	ctx context.Context, s *eventStream, last string, revision func(context.Context) (Revision, error),
) {
	tick := time.NewTicker(h.Limits.Every)
	defer tick.Stop()
	end := time.NewTimer(h.Limits.StreamFor)
	defer end.Stop()
	written := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.closed:
			return
		case <-end.C:
			return
		case <-tick.C:
		}
		now, err := revision(ctx)
		denied, _ := errors.AsType[*statusError](err)
		var sent bool
		switch {
		case errors.Is(err, ErrNotFound):
			s.send("event: gone\ndata: gone\n\n")
			return
		case denied != nil && denied.code == http.StatusForbidden:
			return
		case err == nil && now.Over:
			s.send("event: over\ndata: %s\n\n", now.ID)
			return
		case err == nil && now.ID != last:
			last, sent = now.ID, s.send("event: revision\ndata: %s\n\n", now.ID)
		case time.Since(written) >= h.Limits.Beat: // also while the source cannot be read, which passes
			sent = s.send(": alive\n\n")
		default:
			continue
		}
		if !sent {
			return
		}
		written = time.Now()
	}
}

// eventStream writes events.
type eventStream struct {
	*http.ResponseController
	w      http.ResponseWriter
	within time.Duration
}

// send writes at once. It returns false if the reader does not take it.
func (s *eventStream) send(format string, values ...any) bool {
	_ = s.SetWriteDeadline(time.Now().Add(s.within)) // a recorder of a test has no deadlines
	_, err := fmt.Fprintf(s.w, format, values...)
	if err != nil {
		return false
	}
	return s.Flush() == nil
}
