package dashboard

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// renderWithin bounds how long a page may take.
const renderWithin = time.Minute

// costs is how much longer a page is kept than it took to make it, so that many readers of a large
// record cost a tenth of a core.
const costs = 10

// pages makes pages, a few at a time, and keeps each for all readers.
type pages struct {
	limits  Limits
	slots   chan struct{}
	waiting chan struct{}

	mu   sync.Mutex
	kept map[id]*made
}

type id struct {
	key  Key
	form string
}

// made is a page, or the making of it. Its fields are set once ready is closed.
type made struct {
	ready    chan struct{}
	revision string
	body     []byte
	err      error
	at       time.Time
	until    time.Time // until when it is shown although there is a later revision
}

func newPages(l Limits) *pages {
	return &pages{
		limits:  l,
		slots:   make(chan struct{}, l.Renders),
		waiting: make(chan struct{}, l.Waiting),
		kept:    map[id]*made{},
	}
}

// get returns a page at a revision. It may be an earlier one if that was made a short time ago, or
// is being made: then the page says so.
func (p *pages) get(
	ctx context.Context, key Key, form, revision string,
	write func(ctx context.Context, w io.Writer, revision string) error,
) ([]byte, error) {
	select {
	case p.waiting <- struct{}{}:
		defer func() { <-p.waiting }()
	default:
		return nil, &statusError{
			http.StatusServiceUnavailable,
			"Too many pages are asked for at the same time: try again.",
		}
	}
	page := p.find(id{key, form}, revision, write)
	select {
	case <-page.ready:
		return page.body, page.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// find returns the page that is kept or being made, or begins to make it.
func (p *pages) find(
	of id, revision string, write func(ctx context.Context, w io.Writer, revision string) error,
) *made {
	p.mu.Lock()
	defer p.mu.Unlock()
	page := p.kept[of]
	if page != nil {
		select {
		case <-page.ready:
			if page.err == nil && page.revision == revision || time.Now().Before(page.until) {
				return page
			}
		default:
			return page
		}
	}
	page = &made{ready: make(chan struct{}), revision: revision}
	p.kept[of] = page
	go p.make(page, write) // not for one reader alone: others wait for it, too
	return page
}

// make makes a page.
func (p *pages) make(
	page *made, write func(ctx context.Context, w io.Writer, revision string) error,
) {
	ctx, cancel := context.WithTimeout(context.Background(), renderWithin)
	defer cancel()
	var body bytes.Buffer
	var took time.Duration
	err := func() (err error) {
		select {
		case p.slots <- struct{}{}:
			defer func() { <-p.slots }()
		case <-ctx.Done():
			return &statusError{http.StatusServiceUnavailable, "Other pages are being made: try again."}
		}
		defer func() {
			// nobody's look at a page ends the manager, which may have faults to revert
			if what := recover(); what != nil {
				err = fmt.Errorf("panic: %v", what)
			}
		}()
		began := time.Now()
		defer func() { took = time.Since(began) }()
		return write(ctx, &body, page.revision)
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	page.body, page.err, page.at = body.Bytes(), err, time.Now()
	if err != nil {
		page.body = nil
	}
	page.until = page.at.Add(max(p.limits.Every, costs*took))
	close(page.ready)
	p.forget()
}

// forget removes the oldest pages that are more than may be kept. The caller holds mu.
func (p *pages) forget() {
	for {
		total, oldest := 0, id{}
		var first *made
		for of, page := range p.kept {
			if page.at.IsZero() {
				continue
			}
			total += len(page.body) + 1024
			if first == nil || page.at.Before(first.at) {
				oldest, first = of, page
			}
		}
		if total <= p.limits.Cached || first == nil {
			return
		}
		delete(p.kept, oldest)
	}
}
