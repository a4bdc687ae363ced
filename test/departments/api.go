package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// department is a row.
type department struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
	City string `json:"city"`
}

func departmentOf(id int) department {
	return department{
		ID:   id,
		Name: fmt.Sprintf("Department %d", id),
		City: fmt.Sprintf("City %d", id%97),
	}
}

// backend stores sets of rows with the IDs from 0 to their size - 1.
type backend interface {
	// seed writes the rows of a set that are absent.
	seed(ctx context.Context, size int) error
	// list returns the rows of a set as a list in JSON.
	list(ctx context.Context, size int) ([]byte, error)
	// put replaces a row of a set.
	put(ctx context.Context, size int, d department) error
}

type api struct {
	backends map[string]backend
	ready    atomic.Bool
	mux      http.ServeMux
}

func newAPI(backends map[string]backend) *api {
	a := &api{backends: backends}
	a.mux.HandleFunc("GET /healthz", a.healthz)
	a.mux.HandleFunc("GET /departments", a.get)
	a.mux.HandleFunc("POST /departments", a.post)
	return a
}

// ServeHTTP serves the API.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mux.ServeHTTP(w, r)
}

// seed tries until every backend has its rows.
func (a *api) seed(ctx context.Context) {
	for name, b := range a.backends {
		for _, size := range sizes {
			for err := b.seed(ctx, size); err != nil; err = b.seed(ctx, size) {
				slog.Info("a backend has no rows yet", "backend", name, "error", err)
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
					return
				}
			}
		}
	}
	a.ready.Store(true)
	slog.Info("ready")
}

func (a *api) healthz(w http.ResponseWriter, _ *http.Request) {
	if !a.ready.Load() {
		http.Error(w, "not every backend has its rows", http.StatusServiceUnavailable)
	}
}

// asked returns the backend and the set that a request names; it answers one that names none.
func (a *api) asked(w http.ResponseWriter, r *http.Request) (b backend, size int, ok bool) {
	b, known := a.backends[r.Header.Get("Backend")]
	size, err := strconv.Atoi(r.Header.Get("Rows"))
	if !known || err != nil || !slices.Contains(sizes, size) {
		http.Error(w, fmt.Sprintf("the header Backend must be one of those that are configured, and Rows one of %v", sizes),
			http.StatusBadRequest)
		return nil, 0, false
	}
	return b, size, true
}

func (a *api) get(w http.ResponseWriter, r *http.Request) {
	b, size, ok := a.asked(w, r)
	if !ok {
		return
	}
	rows, err := b.list(r.Context(), size)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(rows)
}

func (a *api) post(w http.ResponseWriter, r *http.Request) {
	b, size, ok := a.asked(w, r)
	if !ok {
		return
	}
	if err := b.put(r.Context(), size, departmentOf(rand.IntN(size))); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
