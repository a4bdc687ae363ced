package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestCleanUpIsNoLoad: keys are removed at a bounded rate, one connection at a time.
func TestCleanUpIsNoLoad(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		p := bare()
		p.Workload.Keyspace.Keys, p.Workload.Keyspace.Prefill, p.Workload.Keyspace.Cleanup = 100_000, true, true
		p.Shape.Users, p.Shape.Requests, p.Shape.Duration = 1, 10, 0
		r := prepared(t, p, w.dialled())
		_, sink := collect(t)
		if err := r.Run(t.Context(), time.Now(), sink); err != nil {
			t.Fatal(err)
		}
		begun, clients := time.Now(), 0
		var said string
		removed, err := r.CleanUp(t.Context(), func(text string) {
			said, clients = text, max(clients, w.server.Clients())
		})
		took := time.Since(begun)
		if removed != 100_000 || err != nil || len(w.server.Keys("")) != 0 {
			t.Errorf("%d keys were removed, %v; %d are left", removed, err, len(w.server.Keys("")))
		}
		if took < 1990*time.Millisecond || took > 2100*time.Millisecond || clients > 1 {
			t.Errorf("it took %s over %d connections, want 2 s over one", took, clients)
		}
		if !strings.Contains(said, "removing keys: ") {
			t.Errorf("the progress is %q", said)
		}
	})
}

// TestCleanUpThatFails: who may not UNLINK is told so; one that is interrupted ends at once.
func TestCleanUpThatFails(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		p := bare()
		p.Workload.Keyspace.Prefill, p.Workload.Keyspace.Cleanup = true, true
		p.Shape.Users, p.Shape.Requests, p.Shape.Duration = 1, 10, 0
		r := prepared(t, p, w.dialled())
		_, sink := collect(t)
		if err := r.Run(t.Context(), time.Now(), sink); err != nil {
			t.Fatal(err)
		}
		w.server.Answer("UNLINK", denied)
		if _, err := r.CleanUp(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "cleanup: ") ||
			!strings.Contains(err.Error(), "rejects UNLINK: NOPERM") {
			t.Errorf("the error is %v", err)
		}
		w.server.Answer("UNLINK", "")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if removed, err := r.CleanUp(ctx, nil); removed != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("%d keys were removed, %v", removed, err)
		}
		p.Workload.Keyspace.Cleanup = false
		if removed, err := r.CleanUp(t.Context(), nil); removed != 0 || err != nil {
			t.Errorf("without a cleanup %d keys were removed, %v", removed, err)
		}
	})
}
