// Package page writes a report as one self-contained HTML file, which shows everything without its
// script, too. The script adds a cursor and zooming to the drawings of a report with a series.
package page

import (
	"bytes"
	_ "embed" // the page, its styles and its script
	"fmt"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/report"
)

var (
	//go:embed page.html
	page string
	//go:embed page.css
	styles string
	//go:embed page.js
	script string
)

// Write writes a report as HTML.
func Write(w io.Writer, d *report.Document) error {
	return write(w, d, nil)
}

// view is what the template is filled with.
type view struct {
	*report.Document
	Live *Live // nil = the page is a file of its own
}

func write(w io.Writer, d *report.Document, live *Live) error {
	var b bytes.Buffer
	if err := pages.Execute(&b, view{d, live}); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

var pages = template.Must(template.New("page").Funcs(template.FuncMap{
	"styles":    func() template.CSS { return template.CSS(styles) },
	"script":    func() template.JS { return template.JS(script) },
	"packed":    func(s string) template.HTML { return template.HTML(s) },
	"title":     title,
	"whole":     whole,
	"article":   article,
	"day":       func(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04 MST") },
	"headlines": headlines,
	"sign":      Sign,
	"tables":    tables,
	"judgedClass": func(j report.Judged) string {
		return map[report.Judged]string{
			report.Met:       "ok",
			report.Missed:    "no",
			report.NotJudged: "un-t",
		}[j]
	},
	"judgedText": func(j report.Judged) string {
		return map[report.Judged]string{
			report.Met:       "ok-t",
			report.Missed:    "no-t",
			report.NotJudged: "un-t",
		}[j]
	},
	"headClass": headClass,
	"cellClass": cellClass,
	"rowClass":  rowClass,
	"percent":   func(share float64) string { return fmt.Sprintf("%.1f", 100*min(max(share, 0), 1)) },
}).Funcs(liveFuncs).Parse(page))

func title(d *report.Document) string {
	state := string(d.Verdict)
	if state == "" {
		state = string(d.State)
	}
	return fmt.Sprintf("%s: %s %s · Redquake", state, d.KindName(), d.Name)
}

// figure is a number before its unit.
var figure = regexp.MustCompile(`(\d) (%|(?:µs|ms|s|min|h)\b)`)

// whole is text in which a line ends neither between a number and its unit, nor at the hyphen or
// the dash of a word, such as the name of a pod or a range, unless that is longer than the line.
func whole(text string) template.HTML {
	text = figure.ReplaceAllString(template.HTMLEscapeString(text), "$1\u00a0$2")
	words := strings.Split(text, " ")
	for i, word := range words {
		if strings.ContainsAny(strings.Trim(word, "-–"), "-–") {
			words[i] = `<span class="nb">` + word + `</span>`
		}
	}
	return template.HTML(strings.Join(words, " "))
}

func article(noun string) string {
	if strings.ContainsAny(noun[:1], "aeiou") {
		return "an " + noun
	}
	return "a " + noun
}

func headlines(d *report.Document) (list []report.Figure) {
	for _, f := range d.Figures {
		if f.Headline {
			list = append(list, f)
		}
	}
	return list
}

// The signs of verdicts and judgements: nothing is told by a colour alone.
const (
	tick = `<path d="M3 8.6l3.2 3.2L13 4.6" fill="none" stroke="currentColor" stroke-width="2.2" ` +
		`stroke-linecap="round" stroke-linejoin="round"/>`
	cross    = `<path d="M4 4l8 8M12 4l-8 8" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round"/>`
	question = `<path d="M5 5.4a3 3 0 1 1 4.4 2.7c-1 .5-1.4 1-1.4 2M8 13v.2" fill="none" stroke="currentColor" ` +
		`stroke-width="2" stroke-linecap="round"/>`
)

// Sign is that of a verdict or a judgement.
func Sign(of any) template.HTML {
	drawing := question
	switch of {
	case report.Pass, report.Met:
		drawing = tick
	case report.Fail, report.Missed:
		drawing = cross
	}
	return template.HTML(`<svg viewBox="0 0 16 16" aria-hidden="true">` + drawing + `</svg>`)
}

// namedTable is a table with a name that no other one of the page has.
type namedTable struct {
	report.Table
	Name string
}

func tables(s report.Section) (list []namedTable) {
	for i, t := range s.Tables {
		if t.Drawn {
			continue
		}
		name := s.Title + ", table"
		if i > 0 {
			name += fmt.Sprintf(" %d", i+1)
		}
		list = append(list, namedTable{t, name})
	}
	return list
}

func headClass(c report.Column) string {
	return classes(class("n", c.Number), class("wide", c.Wide))
}

func cellClass(column report.Column, cell report.Cell) string {
	return classes(class("n", column.Number), class("m", column.Soft), class("wide", column.Wide),
		class("who2", cell.Owner != "" || cell.Class > 0))
}

func rowClass(r report.Row) string {
	return classes(class("sum", r.Sum), class("dim", r.Dim), class("in", r.Silent),
		class("strong", r.Strong))
}

func class(name string, on bool) string {
	if on {
		return name
	}
	return ""
}

func classes(names ...string) string {
	return strings.Join(slices.DeleteFunc(names, func(n string) bool { return n == "" }), " ")
}
