package page

import (
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
)

// hostile is text that would be markup wherever it is not escaped.
const hostile = `"'></script><script>alert(1)</script><img src=x onerror=alert(2)>{{.}}`

// Every text of a document is text in the page, wherever it stands.
func TestHostileTextIsNoMarkup(t *testing.T) {
	cell := report.Cell{Text: hostile}
	d := &report.Document{
		Kind:      report.Fault,
		Namespace: hostile,
		Name:      hostile,
		Redquake:  hostile,
		Verdict:   report.Pass,
		State:     report.Complete,
		Reason:    hostile,
		Finding:   report.Text(hostile).Damage(hostile).Strong(hostile),
		Done:      report.Text(hostile),
		Notes:     []string{hostile},
		Figures: []report.Figure{
			{
				Label: hostile, Unit: result.UnitSeconds, Headline: true, Qualifier: hostile, Note: hostile, Judged: report.Met,
				Limit: new(3.0),
			},
		},
		Sections: []report.Section{{
			ID:      "x",
			Title:   hostile,
			Finding: report.Text(hostile),
			Facts:   []report.Fact{{Name: hostile, Value: hostile, Detail: hostile}},
			Note:    hostile,
			Texts:   []string{hostile},
			Tables: []report.Table{{
				Caption: hostile, Columns: []report.Column{{Title: hostile}, {Title: hostile}},
				Rows: []report.Row{{Cells: []report.Cell{cell, {Bar: &report.Bar{Share: .5, Label: hostile}}}}},
			}},
		}, {ID: "y", Title: hostile, Folded: true, Texts: []string{hostile}}},
		Series: &report.Series{Meta: map[string]any{"name": hostile}, Packed: "ab+/=="},
	}
	var b strings.Builder
	if err := Write(&b, d); err != nil {
		t.Fatal(err)
	}
	for _, markup := range []string{"<script>alert", "<img", "x onerror=alert(2)>{{.}}<", `aria-label=""'`} {
		if strings.Contains(b.String(), markup) {
			t.Errorf("the page contains %s", markup)
		}
	}
	if n := strings.Count(b.String(), "<script"); n != 3 {
		t.Errorf("%d scripts, want 3", n)
	}
	if !strings.Contains(b.String(), ">ab+/==</script>") {
		t.Error("the packed columns have changed")
	}
}

// A line ends neither in a name or a range, nor before a unit; what looks like markup is text.
func TestWhole(t *testing.T) {
	for text, want := range map[string]string{
		"Killing redis-0 for 10 s": "Killing <span class=\"nb\">redis-0</span> for 10\u00a0s",
		"after 248\u00a0ms–624 ms": "after <span class=\"nb\">248\u00a0ms–624\u00a0ms</span>",
		"- none – at all":          "- none – at all",
		"<b>a-b</b> & c":           `<span class="nb">&lt;b&gt;a-b&lt;/b&gt;</span> &amp; c`,
		"5 sentinels, 3 masters":   "5 sentinels, 3 masters",
	} {
		if got := string(whole(text)); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
