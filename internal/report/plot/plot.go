// Package plot is what the drawings of experiments and schedules share: positions, marks of axes,
// templates and styles.
package plot

import (
	"bytes"
	_ "embed" // the styles, and what drawings share
	"fmt"
	"html/template"
	"math"
	"strconv"
)

//go:embed plot.css
var css string

// Styles are those of all drawings of experiments and schedules.
var Styles = template.CSS(css)

//go:embed word.html
var shared string

// Drawings are templates of HTML by name.
type Drawings struct{ templates *template.Template }

// NewDrawings parses templates, which may use the template word: a verdict of a comparison with its
// sign. It panics where they are wrong.
func NewDrawings(text string) *Drawings {
	return &Drawings{template.Must(template.Must(template.New("drawings").Parse(shared)).Parse(text))}
}

// Draw makes the drawing with a name, of the fields that its template reads. An error names the
// drawing.
func (d *Drawings) Draw(name string, of any) (template.HTML, error) {
	var b bytes.Buffer
	err := d.templates.ExecuteTemplate(&b, name, of)
	if err != nil {
		return "", fmt.Errorf("draw the %s: %w", name, err)
	}
	return template.HTML(b.String()), nil // made by html/template
}

// Place is a position in percent of a drawing, as styles take it.
type Place string

// At is the place at a percentage, rounded to hundredths.
func At(percent float64) Place {
	return Place(strconv.FormatFloat(math.Round(percent*100)/100, 'f', -1, 64))
}

// Tick is a mark of an axis.
type Tick struct {
	At    Place
	Text  string
	Class string // of its style; "" = none of its own
}

// HeadWidth is how wide the heads of rows are, in pixels, of which the longest has so many
// characters: with their padding, and at most widest.
func HeadWidth(characters, padding, widest int) int {
	const narrowest, character = 84, 7.8
	return min(max(int(float64(characters)*character)+padding, narrowest), widest)
}
