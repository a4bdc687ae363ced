// Package report is the content of a report, independent of its form: what was found, in sentences
// and in numbers, and how far it can be trusted. From a Document the forms are made: Markdown,
// text, JSON, JUnit and CSV here, HTML in package page. docs/reports.md describes them.
package report

import (
	"html/template"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// Version is the version of the schema of a Document's JSON, docs/report.schema.json: it increases
// when a field is renamed, removed or means something else.
const Version = 1

// Document is the content of a report.
type Document struct {
	Version   int       `json:"version"`
	Kind      Kind      `json:"kind"`
	Namespace string    `json:"namespace,omitempty"` // absent for what ran outside of a cluster
	Name      string    `json:"name"`
	Redquake  string    `json:"redquake"`      // the version of the program that wrote the report
	Time      time.Time `json:"time,omitzero"` // when the load began, UTC; of a fault, its injection
	State     State     `json:"state"`

	Verdict Verdict `json:"verdict,omitempty"` // absent until there is one
	Reason  string  `json:"verdictMessage,omitempty"`
	Finding Prose   `json:"finding"`        // what happened, in one sentence
	Done    Prose   `json:"done,omitempty"` // what was done, to what, under which load

	Figures    []Figure    `json:"figures,omitempty"`
	Objectives []Objective `json:"objectives,omitempty"`
	Doubts     []Doubt     `json:"doubts,omitempty"` // reasons why the figures are inconclusive
	Sections   []Section   `json:"sections,omitempty"`
	Timeline   []Event     `json:"timeline,omitempty"`
	// limits of the figures, and what differs from the plan
	Notes []string `json:"notes,omitempty"`
	// the objects as YAML, without their status
	Specification string `json:"specification,omitempty"`

	// Comparisons are the cells of an experiment against their baselines, Earlier the same cells
	// against an earlier run.
	Comparisons []comparisons.Comparison `json:"comparisons,omitempty"`
	Earlier     []comparisons.Comparison `json:"earlier,omitempty"`

	Series *Series `json:"-"` // what the script of the page draws from; nil = nothing is drawn by it

	Styles template.CSS `json:"-"` // of drawings that need more than the page's
}

// Kind is what a report is about.
type Kind string

// The kinds.
const (
	LoadTest   Kind = "LoadTest"
	Fault      Kind = "Fault"
	Experiment Kind = "Experiment"
	Schedule   Kind = "Schedule"
	Comparison Kind = "Comparison"
)

// State is how far the subject of a report has come.
type State string

// The states.
const (
	Complete State = "Complete"
	Running  State = "Running" // the figures are preliminary
	Failed   State = "Failed"  // it could not run to its end
	Pending  State = "Pending" // it has not begun
)

// Verdict is the verdict of the subject.
type Verdict string

// The verdicts.
const (
	Pass         Verdict = "Pass"
	Fail         Verdict = "Fail"
	Inconclusive Verdict = "Inconclusive"
)

// Judged is what became of a figure's limit, or of an objective.
type Judged string

// The judgements. The zero value is a figure without a limit.
const (
	Met    Judged = "Met"
	Missed Judged = "Missed"
	// there is no figure, its bounds contain the limit, or it is not reliable
	NotJudged Judged = "NotJudged"
)

// Figure is one number. Without a Value it is not known, or only its bounds are: it is beyond
// AtLeast, or between AtLeast and AtMost.
type Figure struct {
	// as in the status or the spec's objectives, such as recoveryTime
	Name string `json:"name"`
	// the fault, the operation or the cell that it is of; "" = the subject
	Of      string      `json:"of,omitempty"`
	Label   string      `json:"label"` // its name for people
	Unit    result.Unit `json:"unit"`
	Value   *float64    `json:"value,omitempty"`
	AtLeast *float64    `json:"atLeast,omitempty"`
	AtMost  *float64    `json:"atMost,omitempty"`
	Limit   *float64    `json:"limit,omitempty"` // of the objective about it
	Judged  Judged      `json:"judged,omitempty"`
	// what the objective counts, if it is not Value: without the faults, or the worst of several
	Counted  *float64 `json:"counted,omitempty"`
	Headline bool     `json:"headline,omitempty"` // one of the few at the top
	// beside the value, such as exact; "" = its bounds, if it has some
	Qualifier string `json:"qualifier,omitempty"`
	// a sentence about what it counts, or why it is not known
	Note string `json:"note,omitempty"`
}

// Objective is one objective of the spec.
type Objective struct {
	Name    string      `json:"name"`         // as in the spec, such as maxRecoveryTime
	Of      string      `json:"of,omitempty"` // the fault whose objective it is; "" = the subject's
	Unit    result.Unit `json:"unit"`
	Limit   float64     `json:"limit"`
	Actual  *float64    `json:"actual,omitempty"`
	AtLeast *float64    `json:"atLeast,omitempty"`
	AtMost  *float64    `json:"atMost,omitempty"`
	Judged  Judged      `json:"judged"`
	Message string      `json:"message,omitempty"` // why it is missed or not judged
}

// Doubt is a reason why figures are inconclusive.
type Doubt struct {
	Reason  string `json:"reason"`       // one word
	Of      string `json:"of,omitempty"` // the fault whose figures it is about; "" = the subject's
	Message string `json:"message"`
}

// Event is an entry of the timeline.
type Event struct {
	At time.Time `json:"at"`
	// from the injection; of a load test from the begin of the load
	Offset  result.Seconds `json:"offsetSeconds"`
	Event   string         `json:"event"` // one word
	Owner   Owner          `json:"owner,omitempty"`
	Object  string         `json:"object,omitempty"`
	Message string         `json:"message,omitempty"`
	Silent  bool           `json:"silent,omitempty"` // no request succeeded then
}

// Owner is who did something, or who a part of the time belongs to.
type Owner string

// The owners.
const (
	Kubernetes Owner = "Kubernetes"
	Redis      Owner = "Redis"
	Client     Owner = "Client"
	ByFault    Owner = "Fault"  // Redquake's own doing
	Nobody     Owner = "Nobody" // not explained
)

// Series is what the script of a page draws from when the reader zooms, and reads when the cursor
// moves.
type Series struct {
	Meta   any    // written as JSON; its fields are those that page.js reads
	Packed string // base64 of the compressed columns
}

// Section is one part of a report.
type Section struct {
	ID      string  `json:"id"` // unique in the report
	Title   string  `json:"title"`
	Finding Prose   `json:"finding,omitempty"` // what is to be seen
	Facts   []Fact  `json:"facts,omitempty"`
	Tables  []Table `json:"tables,omitempty"`
	Note    string  `json:"note,omitempty"` // in small print below

	Drawing template.HTML `json:"-"` // only in HTML: its text alternative is the finding, or a table
	Texts   []string      `json:"-"` // preformatted
	Leading bool          `json:"-"` // in Markdown before what is folded
	Folded  bool          `json:"-"` // closed until it is opened; open in print
	Open    bool          `json:"-"` // of a folded one: open from the begin
	Unfit   bool          `json:"-"` // for print, and for Markdown: too long
	Derived bool          `json:"-"` // shows what the document has elsewhere: not in JSON
}

// Fact is a named value.
type Fact struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Detail string `json:"detail,omitempty"`
}

// text is the value, and in brackets what else there is to say of it.
func (f *Fact) text() string {
	if f.Detail == "" {
		return f.Value
	}
	return f.Value + " (" + f.Detail + ")"
}

// Table is a table of a section. Every row has as many cells as there are columns; the first cell
// of a row is its head.
type Table struct {
	Caption string   `json:"caption,omitempty"`
	Columns []Column `json:"columns"`
	Rows    []Row    `json:"rows"`

	Drawn bool `json:"-"` // the drawing of the section shows it: not in HTML
}

// WithoutEmptyColumns is the table without the columns, but for the first one, in which no row has
// anything.
func (t Table) WithoutEmptyColumns() Table {
	for c := len(t.Columns) - 1; c > 0; c-- {
		if slices.ContainsFunc(t.Rows, func(r Row) bool {
			return r.Cells[c].Text != "" ||
				r.Cells[c].Bar != nil
		}) {
			continue
		}
		t.Columns = slices.Delete(slices.Clone(t.Columns), c, c+1)
		for i := range t.Rows {
			t.Rows[i].Cells = slices.Delete(t.Rows[i].Cells, c, c+1)
		}
	}
	return t
}

// Column is the head of a column.
type Column struct {
	Title  string `json:"title"`
	Number bool   `json:"-"` // aligned to the right
	Wide   bool   `json:"-"` // left out on narrow screens
	Soft   bool   `json:"-"` // in the second colour
	Width  int    `json:"-"` // percent of the table; 0 = as wide as its content
}

// Row is a row of a table.
type Row struct {
	Cells  []Cell `json:"cells"`
	Sum    bool   `json:"sum,omitempty"` // the sum of the others
	Dim    bool   `json:"-"`             // of little weight
	Strong bool   `json:"-"`
	Silent bool   `json:"-"` // in the time without a success
}

// Cell is a cell of a table: its text, and, if it is a figure, the number.
type Cell struct {
	Text   string      `json:"text"`
	Value  *float64    `json:"value,omitempty"`
	Unit   result.Unit `json:"unit,omitempty"`
	Judged Judged      `json:"judged,omitempty"`
	Owner  Owner       `json:"owner,omitempty"`

	// of errors, from 1 in the order of their frequency, for the colour beside it; 0 = none
	Class int  `json:"-"`
	Bar   *Bar `json:"-"` // drawn instead of the text
}

// Bar is a bar in a cell.
type Bar struct {
	Share float64 // of the track, from 0 to 1
	Mark  float64 // where a limit is marked, from 0 to 1; 0 = none
	Owner Owner   // its colour
	Label string  // the sentence of the drawing
}

// Add adds the sections that have something to show: nil has nothing.
func (d *Document) Add(sections ...*Section) {
	for _, one := range sections {
		if one != nil {
			d.Sections = append(d.Sections, *one)
		}
	}
}

// Unreliable reports whether the figures must not be trusted.
func (d *Document) Unreliable() bool {
	return d.Verdict == Inconclusive
}

// Verdict is the limit and what became of it, in words.
func (f *Figure) Verdict() string {
	text := "no limit"
	if f.Limit != nil {
		text = "limit " + InUnit(f.Unit, *f.Limit)
	}
	if f.Counted != nil {
		text += ", counted " + InUnit(f.Unit, *f.Counted)
	}
	if f.Judged == NotJudged {
		text += ": not judged"
	}
	return text
}

// IsText reports whether the value is a word, and no number.
func (f *Figure) IsText() bool {
	return f.Value == nil && f.AtLeast == nil
}
