//go:build integration

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/redquake/redquake/internal/report/page"
	"github.com/redquake/redquake/internal/testing/browser"
)

// What a reader sees at the top of a report in a real browser is the outage, the dip and the recovery that everything
// else shows.
func TestOneFigureInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	for name, a := range arrangements() {
		t.Run(name, func(t *testing.T) {
			s, want := show(t, a), figures{3, a.dip.Value, tookToRecover.Seconds()}
			file := filepath.Join(t.TempDir(), "report.html")
			var written bytes.Buffer
			if err := page.Write(&written, s.document(t, true)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, written.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			p := b.OpenFile(t, file, browser.View{})
			seen := browser.Evaluate[string](p,
				`[document.querySelector('h1').innerText, ...[...document.querySelectorAll('.tile')].map(e => `+
					`e.innerText)].join('\n').replaceAll('\u00a0', ' ')`)
			if got := inText(t, seen, `Outage[^\n]*\n+`, `Dip[^\n]*\n+`, `Recovery[^\n]*\n+`); !got.agrees(want) {
				t.Errorf("the figures are %+v, want %+v, in\n%s", got, want, seen)
			}
			if got := inText(t, seen, "without a single answer for ", `Dip[^\n]*\n+`, "After "); !got.agrees(want) {
				t.Errorf("the sentence has %+v, want %+v, in\n%s", got, want, seen)
			}
			p.Check()
		})
	}
}
