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
)

// pageOf writes a page.
func pageOf(t testing.TB, d *report.Document) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(forms(t, d)["html"]), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// In a real browser a page has no error and asks for nothing, and fits on narrow screens.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	documents := map[string]*report.Document{"schedule": scheduled(t)}
	all := states(t)
	for _, name := range []string{"pass", "inconclusive", "running", "one cell", "not recovered"} {
		documents[name] = reported(t, all[name])
	}
	for name, d := range documents {
		t.Run(name, func(t *testing.T) {
			b.OpenFile(t, pageOf(t, d), browser.View{}).Check(1280, 800, 400, 320)
		})
	}
}

// So does that of 128 cells.
func TestManyCellsInABrowser(t *testing.T) {
	t.Parallel()
	p := browser.Start(t).OpenFile(t, pageOf(t, reported(t, many(t))), browser.View{})
	p.Check(1280, 320)
	t.Logf("ready after %s", p.Ready())
}

const picturesOut = "REDQUAKE_PICTURES_OUT" // names the folder of the pictures

// TestTakePictures takes the pictures of the documentation, of the simulated experiment and schedule of the other tests.
func TestTakePictures(t *testing.T) {
	folder := os.Getenv(picturesOut)
	if folder == "" {
		t.Skip("only where REDQUAKE_PICTURES_OUT names the folder of the pictures: make screenshots")
	}
	b := browser.Start(t)
	experiment := reported(t, states(t)["pass"])
	for _, one := range []struct {
		name   string
		of     *report.Document
		view   browser.View
		height int
	}{
		{"experiment-light", experiment, browser.View{}, 1700}, {"experiment-dark", experiment, browser.View{Dark: true}, 1700}, {"schedule-light", scheduled(t), browser.View{}, 760},
	} {
		p := b.OpenFile(t, pageOf(t, one.of), one.view)
		p.Picture(filepath.Join(folder, one.name+".png"), 1200, one.height)
		if errors := p.Errors(); len(errors) > 0 {
			t.Errorf("%s: %q", one.name, errors)
		}
		fmt.Printf("%s: ready after %s\n", one.name, p.Ready().Round(time.Millisecond))
	}
}
