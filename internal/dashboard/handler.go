package dashboard

import (
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/redquake/redquake/internal/report/page"
)

// Config is what a Handler needs.
type Config struct {
	Source        Source
	Authenticator authenticator.Request // whose bearer token it is
	Authorizer    authorizer.Authorizer // what its user may read
	Log           logr.Logger
	Limits        Limits
}

// Limits bound what readers cost. The zero value of a field is its default.
type Limits struct {
	Renders int // pages that are made at the same time; default 1
	Waiting int // requests that wait for a page to be made; default 32
	Streams int // streams of events at the same time; default 64
	// between two events of a stream, and two renderings of a page; default 1 s
	Every time.Duration
	// how long a stream lasts; the browser opens another one, which is authenticated again; default 10
	// min
	StreamFor time.Duration
	Beat      time.Duration // between two signs of life of a stream without events; default 15 s
	Write     time.Duration // how long a reader may take to accept what was written; default 30 s
	Cached    int           // bytes of pages that are kept for the next reader; default 16 MiB
}

func (l Limits) withDefaults() Limits {
	set := func(n *int, d int) {
		if *n == 0 {
			*n = d
		}
	}
	length := func(t *time.Duration, d time.Duration) {
		if *t == 0 {
			*t = d
		}
	}
	set(&l.Renders, 1)
	set(&l.Waiting, 32)
	set(&l.Streams, 64)
	set(&l.Cached, 16<<20)
	length(&l.Every, time.Second)
	length(&l.StreamFor, 10*time.Minute)
	length(&l.Beat, 15*time.Second)
	length(&l.Write, 30*time.Second)
	return l
}

// Handler serves the pages:
//
//	/                              the objects of all namespaces that the reader may list
//	/NAMESPACE/                    those of a namespace
//	/NAMESPACE/RESOURCE/NAME       the page of an object; ?form=html, markdown, json, junit, csv or text is its report as a file
//	.../events                     the revisions of a page, as server-sent events
type Handler struct {
	Config
	mux     *http.ServeMux
	pages   *pages
	streams chan struct{}
	closed  chan struct{}
}

// NewHandler returns a Handler. It does nothing until there is a request.
func NewHandler(c Config) *Handler {
	c.Limits = c.Limits.withDefaults()
	h := &Handler{
		Config:  c,
		mux:     http.NewServeMux(),
		pages:   newPages(c.Limits),
		streams: make(chan struct{}, c.Limits.Streams),
		closed:  make(chan struct{}),
	}
	for pattern, serve := range map[string]func(http.ResponseWriter, *http.Request, user.Info) error{
		"/{$}":                                  h.list,
		"/events":                               h.listEvents,
		"/{namespace}/{$}":                      h.list,
		"/{namespace}/events":                   h.listEvents,
		"/{namespace}/{resource}/{name}":        h.object,
		"/{namespace}/{resource}/{name}/events": h.objectEvents,
		"/": func(http.ResponseWriter, *http.Request,
			user.Info,
		) error {
			return notFound
		},
	} {
		h.mux.HandleFunc(pattern, h.guarded(serve))
	}
	return h
}

// Close ends all streams.
func (h *Handler) Close() {
	close(h.closed)
}

var notFound = &statusError{http.StatusNotFound, "There is no such page. / lists what there is."}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", page.Policy())
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Vary", "Authorization, Cookie")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "The dashboard only reads.", http.StatusMethodNotAllowed)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// guarded authenticates the reader, and answers errors.
func (h *Handler) guarded(
	serve func(http.ResponseWriter, *http.Request, user.Info) error,
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// First the page has to be made. A recorder of a test has no deadlines.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(renderWithin + h.Limits.Write))
		who, err := h.authenticate(r)
		if err == nil {
			err = serve(w, r, who)
		}
		if err != nil {
			h.fail(w, r, err)
		}
	}
}

// keyOf is the object that a request names.
func keyOf(r *http.Request) (Key, error) {
	key := Key{r.PathValue("resource"), r.PathValue("namespace"), r.PathValue("name")}
	for _, one := range resources {
		if key.Resource == one {
			return key, nil
		}
	}
	return key, notFound
}
