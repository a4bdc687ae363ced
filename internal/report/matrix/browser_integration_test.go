//go:build integration

package matrix

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/testing/browser"
	"github.com/redquake/redquake/internal/testing/reporttest"
)

// In a real browser a page has no error and asks for nothing, and fits on narrow screens.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	documents := map[string]*report.Document{}
	all := states(t)
	for _, name := range []string{"pass", "inconclusive", "running", "one cell", "not recovered"} {
		documents[name] = reported(t, all[name])
	}
	for name, d := range documents {
		t.Run(name, func(t *testing.T) {
			b.OpenFile(t, reporttest.Page(t, d), browser.View{}).Check(1280, 800, 400, 320)
		})
	}
}

// So does that of 128 cells.
func TestManyCellsInABrowser(t *testing.T) {
	t.Parallel()
	p := browser.Start(t).OpenFile(t, reporttest.Page(t, reported(t, many(t))), browser.View{})
	p.Check(1280, 320)
	t.Logf("ready after %s", p.Ready())
}

const picturesOut = "REDQUAKE_PICTURES_OUT" // names the folder of the pictures

// TestTakePictures takes the pictures of the documentation, of the simulated experiment of the other tests.
func TestTakePictures(t *testing.T) {
	folder := os.Getenv(picturesOut)
	if folder == "" {
		t.Skip("only where REDQUAKE_PICTURES_OUT names the folder of the pictures: make screenshots")
	}
	b := browser.Start(t)
	file := reporttest.Page(t, reported(t, states(t)["pass"]))
	for name, view := range map[string]browser.View{
		"experiment-light": {Width: 1200},
		"experiment-dark":  {Width: 1200, Dark: true},
		"experiment-400":   {Width: 400},
	} {
		p := b.OpenFile(t, file, view)
		p.Picture(filepath.Join(folder, name+".png"), view.Width, 1700)
		if errors := p.Errors(); len(errors) > 0 {
			t.Errorf("%s: %q", name, errors)
		}
		fmt.Printf("%s: ready after %s\n", name, p.Ready().Round(time.Millisecond))
	}
}
