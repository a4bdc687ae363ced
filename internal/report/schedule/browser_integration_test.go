//go:build integration

package schedule

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/redquake/redquake/internal/testing/browser"
	"github.com/redquake/redquake/internal/testing/reporttest"
)

// In a real browser the page of a schedule has no error and asks for nothing, and fits on narrow screens.
func TestPageInABrowser(t *testing.T) {
	t.Parallel()
	browser.Start(t).OpenFile(t, reporttest.Page(t, scheduled(t)), browser.View{}).Check(1280, 800, 400, 320)
}

// TestTakePictures takes the picture of the documentation, of the simulated schedule of the other tests.
func TestTakePictures(t *testing.T) {
	folder := os.Getenv("REDQUAKE_PICTURES_OUT")
	if folder == "" {
		t.Skip("only where REDQUAKE_PICTURES_OUT names the folder of the pictures: make screenshots")
	}
	p := browser.Start(t).OpenFile(t, reporttest.Page(t, scheduled(t)), browser.View{})
	p.Picture(filepath.Join(folder, "schedule-light.png"), 1200, 760)
	if errors := p.Errors(); len(errors) > 0 {
		t.Errorf("%q", errors)
	}
}
