package dashboard

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

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
