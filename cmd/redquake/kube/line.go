package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
)

// line is the connection to the API server, as its requests find it. An informer keeps it to itself
// when no connection can be made.
type line struct {
	mu        sync.Mutex
	down      bool
	observers map[*func(error)]bool
}

// observe calls f with the error of each request that gets no answer, and with nil when one has got
// an answer again. stop ends that.
func (l *line) observe(f func(error)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.observers[&f] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.observers, &f)
	}
}

func (l *line) say(err error) {
	l.mu.Lock()
	news := err != nil || l.down
	l.down = err != nil
	observers := slices.Collect(maps.Keys(l.observers))
	l.mu.Unlock()
	if !news {
		return
	}
	for _, f := range observers {
		(*f)(err)
	}
}

// observed is a transport whose requests show whether the API server answers.
type observed struct {
	http.RoundTripper
	line *line
}

func (o observed) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := o.RoundTripper.RoundTrip(r)
	switch {
	case err == nil:
		o.line.say(nil)
	case !errors.Is(err, context.Canceled):
		o.line.say(fmt.Errorf("the API server does not answer: %w", err))
	}
	return response, err
}
