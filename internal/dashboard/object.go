// Package dashboard serves load tests, faults, experiments and schedules as pages: a list, and for
// each object its report, which follows the object until it is complete. It only reads. Who may see
// what is decided by the API server, as for kubectl. It has no client of Kubernetes: package
// controllers/dashboardserver reads for it.
package dashboard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/page"
)

// object serves the page of an object, or its report in a form.
func (h *Handler) object(w http.ResponseWriter, r *http.Request, who user.Info) error {
	key, err := keyOf(r)
	if err != nil {
		return err
	}
	err = h.require(r.Context(), who, ofPage(key)...)
	if err != nil {
		return err
	}
	revision, err := h.Source.Revision(r.Context(), key)
	if err != nil {
		return err
	}
	name := r.URL.Query().Get("form")
	if name == "" {
		body, err := h.pages.get(r.Context(), key, "", revision.ID,
			func(ctx context.Context, w io.Writer, revision string) error {
				return h.render(ctx, key, w, func(w io.Writer, d *report.Document) error {
					return page.WriteLive(w, d, page.Live{
						Revision: revision,
						Home:     "/",
						Save:     "?form=html",
					})
				})
			})
		if err != nil {
			return err
		}
		send(w, "text/html; charset=utf-8", body)
		return nil
	}
	as := page.FormNamed(name)
	if as == nil {
		return &statusError{
			http.StatusBadRequest,
			fmt.Sprintf("%q is no form of a report: there are %s.", name,
				strings.Join(page.FormNames(), ", ")),
		}
	}
	body, err := h.pages.get(r.Context(), key, name, revision.ID,
		func(ctx context.Context, w io.Writer, _ string) error { return h.render(ctx, key, w, as.Write) })
	if err != nil {
		return err
	}
	w.Header().Set("Content-Disposition",
		mime.FormatMediaType("attachment", map[string]string{
			"filename": key.Namespace + "-" + key.Name + as.Extension,
		}))
	send(w, as.ContentType, body)
	return nil
}

func (h *Handler) render(
	ctx context.Context, key Key, w io.Writer, write func(io.Writer, *report.Document) error,
) error {
	d, err := h.Source.Report(ctx, key)
	if err != nil {
		return err
	}
	return write(w, d)
}

func send(w http.ResponseWriter, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	_, _ = w.Write(body) //nolint:gosec // made by html/template, or no HTML
}

// ErrNotFound is returned for an object that does not exist, or that is of a namespace that this
// operator does not watch.
var ErrNotFound = errors.New("there is no such object")

// The resources that have pages.
const (
	LoadTests   = "redisloadtests"
	Faults      = "redisfaults"
	Experiments = "redisexperiments"
	Schedules   = "redisexperimentschedules"
)

// resources are those of a list, in its order.
var resources = []string{LoadTests, Faults, Experiments, Schedules}

// Key names an object.
type Key struct{ Resource, Namespace, Name string }

func (k Key) path() string {
	return "/" + k.Namespace + "/" + k.Resource + "/" + k.Name
}

// Object is an entry of the list.
type Object struct {
	Key
	Type     string // what it is, such as PodKill; "" = its resource tells it
	Status   string // as kubectl get shows it
	Message  string // why, if it failed
	Failed   bool   // it could not run to its end
	Over     bool
	Verdict  report.Verdict
	Figures  []report.Fact // the few of the status that are shown beside it
	Created  time.Time
	Revision string // another one for every change
}

// Revision is a state of what a page shows.
type Revision struct {
	ID   string // differs from that of every earlier state
	Over bool   // it will not change any more
}

// Source is what the pages are made of. Its methods are called for requests alone, a few at a time;
// they are safe for concurrent use.
type Source interface {
	// Namespaces are those with objects, in alphabetical order.
	Namespaces(ctx context.Context) ([]string, error)
	// Objects are the objects of a resource in a namespace, the newest first. "" = all namespaces. At
	// most limit are returned; more is how many there are in addition.
	Objects(
		ctx context.Context, resource, namespace string, limit int,
	) (list []Object, more int, err error)
	// Revision is the state of an object and of what belongs to it. It costs little.
	Revision(ctx context.Context, key Key) (Revision, error)
	// Report makes the report of an object. It may take seconds.
	Report(ctx context.Context, key Key) (*report.Document, error)
}
