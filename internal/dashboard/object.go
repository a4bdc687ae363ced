package dashboard

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/page"
)

// form is a form of a report as a file.
type form struct {
	extension, contentType string
	write                  func(io.Writer, *report.Document) error
}

var forms = map[string]form{
	"html":     {".html", "text/html; charset=utf-8", page.Write},
	"markdown": {".md", "text/markdown; charset=utf-8", report.WriteMarkdown},
	"json":     {".json", "application/json", report.WriteJSON},
	"junit":    {".xml", "application/xml", report.WriteJUnit},
	"csv":      {".csv", "text/csv; charset=utf-8", report.WriteCSV},
	"text":     {".txt", "text/plain; charset=utf-8", report.WriteText},
}

// object serves the page of an object, or its report in a form.
func (h *Handler) object(w http.ResponseWriter, r *http.Request, who user.Info) error {
	key, err := keyOf(r)
	if err != nil {
		return err
	}
	if err := h.require(r.Context(), who, ofPage(key)...); err != nil {
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
					return page.WriteLive(w, d, page.Live{Revision: revision, Home: "/", Save: "?form=html"})
				})
			})
		if err != nil {
			return err
		}
		send(w, "text/html; charset=utf-8", body)
		return nil
	}
	as, known := forms[name]
	if !known {
		return &statusError{
			http.StatusBadRequest,
			fmt.Sprintf("%q is no form of a report: there are html, markdown, json, junit and csv.", name),
		}
	}
	body, err := h.pages.get(r.Context(), key, name, revision.ID,
		func(ctx context.Context, w io.Writer, _ string) error { return h.render(ctx, key, w, as.write) })
	if err != nil {
		return err
	}
	w.Header().Set("Content-Disposition",
		mime.FormatMediaType("attachment", map[string]string{
			"filename": key.Namespace + "-" + key.Name + as.extension,
		}))
	send(w, as.contentType, body)
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
