//go:build integration

package run

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/testing/browser"
)

// pageOf writes a page.
func pageOf(t testing.TB, d *report.Document) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(written(t, "html", d)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// In a real browser a page has no error and asks for nothing, can be read, and fits on narrow screens.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	reports := map[string]subject.Input{"without a record": saved(t, "pass"), "low rate": lowRate(t, 522, 5)}
	for _, n := range []int{450, 300, 250, 234} { // the outage ends at 30 to 58 % of the width
		reports[fmt.Sprint("backlog of ", n)] = lowRate(t, n, 1234)
	}
	for _, name := range []string{
		"demo", "fail", "inconclusive", "not-recovered", "pass", "quiet", "search", "several",
	} {
		reports[name] = saved(t, name)
	}
	for name, in := range reports {
		if name == "without a record" {
			in.Series = nil
		}
		t.Run(name, func(t *testing.T) {
			for _, d := range documents(t, in) {
				t.Run(d.Name, func(t *testing.T) {
					b.OpenFile(t, pageOf(t, d), browser.View{}).Check(1280, 800, 400, 320)
				})
			}
		})
	}
}

// lowRate is a run with 50 requests a second, of which all of an outage fail at its end, by a timeout, and with phases
// that are shorter than their names. It has n steps; the one after the outage has so many successes.
func lowRate(t testing.TB, n int, backlog uint64) subject.Input {
	t.Helper()
	const step, injected, recovered = 100 * time.Millisecond, 130, 136
	in := saved(t, "pass")
	f := &in.Faults[0].Status
	f.Impact.BaselineTPS = "50"
	for i, after := range []time.Duration{0, 20, 22, 44, 84, 125, 197, 233, 599, 603, 610} {
		if i < len(f.Timeline) {
			f.Timeline[i].Offset = v1alpha1.DurationOf(after * time.Millisecond)
		}
	}
	in.Series = merged.New("run", in.Series.Start, step, []string{"set"}, 1)
	for i := range n {
		from := int64(i) * int64(step)
		iv := &record.Interval{
			Index: int64(i), Pods: 1, Ops: make([]record.Op, 1), FirstOK: from, LastOK: from, FirstError: -1, LastError: -1,
		}
		switch op := &iv.Ops[0]; {
		case i < injected || i > recovered:
			op.OK = 5
			if i == recovered+1 {
				op.OK = backlog
			}
			var h histogram.Histogram
			h.Record(int64(time.Millisecond))
			op.Latency = h.AppendTo(nil)
		case i == recovered:
			op.Fail, iv.FirstOK, iv.LastOK, iv.FirstError, iv.LastError = 91, -1, -1, from, from
			op.Errors[record.ClassTimeout] = 91
			iv.Gaps = []record.Gap{{From: injected * int64(step), To: from + int64(step)}}
		default:
			iv.FirstOK, iv.LastOK = -1, -1
		}
		if err := in.Series.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	in.Series.Finish(0)
	return in
}

// A figure that is a range, or has a long uncertainty, stays in its column.
func TestFiguresStayInTheirColumns(t *testing.T) {
	t.Parallel()
	in := saved(t, "pass")
	i := in.Faults[0].Status.Impact
	i.Outage.BoundedDuration = v1alpha1.BoundedDuration{
		Value:   v1alpha1.DurationOf(800 * time.Millisecond),
		AtLeast: v1alpha1.DurationOf(463 * time.Millisecond),
		AtMost:  v1alpha1.DurationOf(800 * time.Millisecond),
	}
	i.RecoveryTime = &v1alpha1.BoundedDuration{
		Value:   v1alpha1.DurationOf(934 * time.Millisecond),
		AtLeast: v1alpha1.DurationOf(674 * time.Millisecond),
		AtMost:  v1alpha1.DurationOf(1_194 * time.Millisecond),
	}
	d, err := Fault(in, in.Faults[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	p := browser.Start(t).OpenFile(t, pageOf(t, d), browser.View{})
	for _, width := range []int{1280, 1000, 700, 400, 320} {
		p.Show(browser.View{Width: width})
		wide := browser.Evaluate[[]string](p,
			`[...document.querySelectorAll('.tile .v')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.innerText)`)
		if len(wide) > 0 {
			t.Errorf("at %d px: %q", width, wide)
		}
	}
}

// The cursor and the zoom follow keys and buttons.
func TestCursorAndZoom(t *testing.T) {
	t.Parallel()
	d, err := Fault(saved(t, "pass"), "kill-primary")
	if err != nil {
		t.Fatal(err)
	}
	p := browser.Start(t).OpenFile(t, pageOf(t, d), browser.View{})
	value := func(expression string) string { return browser.Evaluate[string](p, expression) }
	before := value(`document.getElementById('curves').focus(); document.getElementById('c-tps').getAttribute('d')`)
	for range 3 {
		p.Key(kb.ArrowRight)
	}
	if text := value(`document.querySelector('output[data-read=tps]').textContent`); text != "0/s" {
		t.Errorf("0.3 s after the injection the throughput is %q", text)
	}
	if text := value(
		`new Promise(r => setTimeout(() => r(document.getElementById('say').textContent), 400))`); !strings.HasPrefix(text,
		"+0.3\u00a0s: 0/s, errors ") {
		t.Errorf("a screen reader says %q", text)
	}
	p.Key("+")
	if after := value(`document.getElementById('c-tps').getAttribute('d')`); after == before {
		t.Error("the curve did not change when it was zoomed")
	}
	p.Key(kb.Escape)
	if after := value(`document.getElementById('c-tps').getAttribute('d')`); strings.Count(after, "H") < 10 {
		t.Errorf("after escape the curve is %q", after)
	}
	if text := value(
		`[...document.querySelectorAll('.bar button')].pop().click(); document.querySelectorAll('.bar ` +
			`button[aria-pressed=true]').length + ''`); text !=
		"1" {
		t.Errorf("%s buttons are pressed", text)
	}
	if errors := p.Errors(); len(errors) > 0 {
		t.Errorf("errors %q", errors)
	}
}

// Wherever the fault is in the part that is shown, no text over the curve covers another one, and the fault and the
// outage are named.
func TestNotesDoNotOverlap(t *testing.T) {
	t.Parallel()
	d, err := Fault(saved(t, "pass"), "kill-primary")
	if err != nil {
		t.Fatal(err)
	}
	p := browser.Start(t).OpenFile(t, pageOf(t, d), browser.View{})
	for name, part := range map[string]string{
		"in the middle":  "at - 5, at + 6",
		"near the end":   "at - 8, at + 2.6",
		"near the begin": "at - 1, at + 9",
	} {
		texts := browser.Evaluate[[]string](p, `(() => {
			const at = +document.querySelector('.plot.p1 .mark').dataset.t, button = document.querySelector('.bar button'), [a, b] = [`+
			part+`]
			button.dataset.a = a; button.dataset.b = b; button.click()
			const shown = [...document.querySelectorAll('.plot.p1 .note')].filter(e => e.checkVisibility({visibilityProperty: true}))
			const covers = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
			const texts = shown.map(e => e.innerText)
			shown.forEach((a, i) => shown.slice(i + 1).forEach(b => { if (covers(a.getBoundingClientRect(), `+
			`b.getBoundingClientRect())) texts.push('OVERLAP ' + [a, b].map(e => e.className + ' ' + e.innerText + ' ' + `+
			`JSON.stringify(e.getBoundingClientRect())).join(' | ')) }))
			return texts
		})()`)
		all := strings.Join(texts, "\n")
		if strings.Contains(all, "OVERLAP") || !strings.Contains(all, "PodKill") || !strings.Contains(all, "nothing for") {
			t.Errorf("%s:\n%s", name, all)
		}
	}
}

// longRecord is the record of 2 h at 100 ms with latencies as they are on a busy machine, and an outage of 2 s in the
// middle.
func longRecord(t testing.TB) *merged.Series {
	t.Helper()
	const n, outage = 72_000, 36_000
	s := merged.New("run", time.Unix(1_800_000_000, 0), 100*time.Millisecond, []string{"set", "get"}, 1)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		from := int64(i) * int64(100*time.Millisecond)
		iv := &record.Interval{
			Index: int64(i), Pods: 1, Ops: make([]record.Op, 2), FirstOK: from, LastOK: from, FirstError: -1, LastError: -1,
		}
		for k := range iv.Ops {
			op := &iv.Ops[k]
			if i >= outage && i < outage+20 {
				op.Fail, iv.FirstOK, iv.LastOK, iv.FirstError, iv.LastError = 20, -1, -1, from, from
				op.Errors[record.ClassRefused] = 20
				continue
			}
			op.OK = uint64(95 + random.IntN(11))
			var h histogram.Histogram
			for range 20 {
				h.Record(int64(float64(120*time.Microsecond) * (1 + random.ExpFloat64()) *
					(1 + 20*random.Float64()*random.Float64()*random.Float64())))
			}
			op.Latency = h.AppendTo(nil)
		}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	return s
}

const reportOut = "REDQUAKE_REPORT_OUT" // names the file of the table

// TestMeasureReports prints sizes and opening times of pages, the record of 2 h at 100 ms among them, which must open
// within 2 s in less than 5 MB.
func TestMeasureReports(t *testing.T) {
	file := os.Getenv(reportOut)
	if file == "" {
		t.Skip("only where REDQUAKE_REPORT_OUT names the file of the table: make bench-report")
	}
	fault, err := Fault(saved(t, "demo"), "kill-primary")
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Page                      string
		Bytes                     int
		MadeSeconds, ReadySeconds float64
		Openings                  int // of which the fastest counts
	}
	long := longRecord(t)
	var rows []row
	b := browser.Start(t)
	for name, make := range map[string]func() *report.Document{
		"50 s at 100 ms, a fault": func() *report.Document { return fault },
		"2 h at 100 ms":           func() *report.Document { return LoadTest(subject.Input{Name: "long", Series: long}) },
	} {
		began := time.Now()
		d := make()
		html := written(t, "html", d)
		r := row{Page: name, Bytes: len(html), MadeSeconds: time.Since(began).Seconds(), Openings: 5}
		path := pageOf(t, d)
		for range r.Openings {
			if ready := b.OpenFile(t, path, browser.View{}).Ready().Seconds(); r.ReadySeconds == 0 || ready < r.ReadySeconds {
				r.ReadySeconds = ready
			}
		}
		rows = append(rows, r)
		t.Logf("%s: %d kB, made in %.2f s, ready after %.2f s (best of %d)", name, r.Bytes/1000, r.MadeSeconds,
			r.ReadySeconds, r.Openings)
		if r.Bytes > 5_000_000 || r.ReadySeconds > 2 {
			t.Errorf("%s has %d bytes, and is ready after %.2f s", name, r.Bytes, r.ReadySeconds)
		}
	}
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

const picturesOut = "REDQUAKE_PICTURES_OUT" // names the folder of the pictures

// TestTakePictures takes the pictures of the documentation, of the run that REDQUAKE_DEMO_RUN names.
func TestTakePictures(t *testing.T) {
	folder := os.Getenv(picturesOut)
	if folder == "" {
		t.Skip("only where REDQUAKE_PICTURES_OUT names the folder of the pictures: make screenshots")
	}
	in := subject.Input{Name: "demo"}
	readFile(t, &in, os.Getenv("REDQUAKE_DEMO_RUN"))
	d, err := Fault(in, in.Faults[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	path := pageOf(t, d)
	b := browser.Start(t)
	for _, one := range []struct {
		name          string
		view          browser.View
		width, height int
	}{
		{"report-light", browser.View{}, 1200, 1500},
		{"report-dark", browser.View{Dark: true}, 1200, 1500},
		{"report-print", browser.View{Print: true, Width: 794}, 794, 1123},
		{"report-400", browser.View{Width: 400}, 400, 1500},
		{"report-400-dark", browser.View{Width: 400, Dark: true}, 400, 1500},
	} {
		p := b.OpenFile(t, path, one.view)
		p.Picture(filepath.Join(folder, one.name+".png"), one.width, one.height)
		if errors := p.Errors(); len(errors) > 0 {
			t.Errorf("%s: %q", one.name, errors)
		}
		fmt.Printf("%s: %d kB of HTML, ready after %s\n", one.name, len(written(t, "html", d))/1000,
			p.Ready().Round(time.Millisecond))
	}
}
