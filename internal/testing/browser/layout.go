package browser

import (
	_ "embed" // the script
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed layout.js
var unreadable string

// screens names a folder, into which Check writes a picture of all that it looks at.
const screens = "REDQUAKE_SCREENS_OUT"

// tallest is how tall a picture can be.
const tallest = 16_000

func (p *Page) screen(view View) {
	p.t.Helper()
	folder := os.Getenv(screens)
	if folder == "" {
		return
	}
	name := strings.NewReplacer("/", "-", " ", "-").Replace(p.t.Name())
	theme := "light"
	if view.Dark {
		theme = "dark"
	}
	height := 0
	if Evaluate[int](p, "document.documentElement.scrollHeight") > tallest {
		height = tallest
	}
	p.Picture(filepath.Join(folder, fmt.Sprintf("%s-%d-%s.png", name, view.Width, theme)),
		view.Width, height)
	p.Show(view)
}

// Unreadable is what cannot be read of a page with all its folded parts open: texts that cover each
// other, that are cut off or leave their column, words that are broken although they fit on a line,
// verdicts beyond the edge of the screen.
func (p *Page) Unreadable() []string {
	p.t.Helper()
	Evaluate[bool](p, "document.querySelectorAll('details').forEach(d => d.open = true); true")
	return Evaluate[[]string](p, unreadable)
}
