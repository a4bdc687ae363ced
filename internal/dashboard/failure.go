package dashboard

import (
	"bytes"
	"context"
	_ "embed" // the page
	"errors"
	"html/template"
	"net/http"
	"strings"

	"github.com/redquake/redquake/internal/report/page"
)

//go:embed failure.html
var failurePage string

// failures is the page that a browser gets instead of the one that it has asked for; programs get
// the sentence alone.
var failures = template.Must(template.New("failure").Funcs(template.FuncMap{
	"styles": page.Styles,
	"title":  func(e *statusError) string { return http.StatusText(e.code) },
	"text":   func(e *statusError) string { return e.message },
}).Parse(failurePage))

// fail answers an error. What is not meant for readers is logged.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	answer, ok := errors.AsType[*statusError](err)
	switch {
	case ok:
	case errors.Is(err, ErrNotFound):
		answer = &statusError{
			http.StatusNotFound,
			"There is no " + strings.TrimSuffix(r.PathValue("resource"), "s") + " " + r.PathValue("name") +
				" in namespace " + r.PathValue("namespace") + ".",
		}
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return // the reader is gone
	default:
		h.Log.Error(err, "failed to make a page of the dashboard", "path", r.URL.Path)
		answer = &statusError{
			http.StatusInternalServerError,
			"The page could not be made: " + err.Error(),
		}
	}
	switch answer.code {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="redquake"`)
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "5")
	}
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		http.Error(w, answer.message, answer.code)
		return
	}
	var b bytes.Buffer
	if err := failures.Execute(&b, answer); err != nil {
		http.Error(w, answer.message, answer.code)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(answer.code)
	_, _ = w.Write(b.Bytes())
}
