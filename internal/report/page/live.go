package page

import (
	"crypto/sha256"
	_ "embed" // script and styles
	"encoding/base64"
	"html/template"
	"io"

	"github.com/redquake/redquake/internal/report"
)

var (
	//go:embed live.js
	liveScript string
	//go:embed live.css
	liveStyles string
)

// liveFuncs are those of pages that are served.
var liveFuncs = template.FuncMap{
	"liveStyles": func() template.CSS { return template.CSS(liveStyles) },
	"liveScript": func() template.JS { return template.JS(liveScript) },
}

// Live is what a page that is served has beyond a report: it follows its subject until that is
// over. Saved and opened as a file it is a report, and asks no network for anything.
type Live struct {
	// of the content: the script fetches the page again when its stream of events names another one
	Revision string
	Home     string // the address of the list
	Save     string // the address of the report as a file
}

// WriteLive writes a report as a page that follows it. Its events are at the page's own address
// followed by /events.
func WriteLive(w io.Writer, d *report.Document, live Live) error {
	return write(w, d, &live)
}

// Styles are those of all pages that are served.
func Styles() template.CSS {
	return template.CSS(styles + liveStyles)
}

// Script is the script that follows a page, for pages other than reports: of those it replaces
// main.
func Script() template.JS {
	return template.JS(liveScript)
}

// Policy is the Content-Security-Policy for pages that are served: only the scripts of this package
// run, and they reach only the server of the page.
func Policy() string {
	allowed := ""
	for _, s := range []string{script, liveScript} {
		sum := sha256.Sum256([]byte(s))
		allowed += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src" + allowed +
		"; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}
