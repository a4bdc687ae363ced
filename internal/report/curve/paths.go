package curve

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// drawn is one curve: how it is drawn here, and how the script draws it again when the reader
// zooms.
type drawn struct {
	ID     string  `json:"id"`
	Column string  `json:"col"`
	Kind   string  `json:"kind"`           // band, area, line or bars
	Rate   bool    `json:"rate,omitempty"` // a count: drawn per second
	Use    string  `json:"use,omitempty"`  // hi: the highest value of a bucket, else the mean
	Log    bool    `json:"log,omitempty"`
	Low    float64 `json:"lo"`
	High   float64 `json:"hi"`

	Fill, Stroke, Weight, Opacity string `json:"-"`
	D                             string `json:"-"`
}

// share is the height of a value.
func (p *drawn) share(x float64) float64 {
	if p.Log {
		return logarithmic{p.Low, p.High}.share(x)
	}
	return level{p.High}.share(x)
}

// draw sets the path of a curve over the part of the columns that a frame shows. A value holds for
// its steps: there are no slopes, and a hole where there is no value.
func (p *drawn) draw(c *Columns, values []float64, f frame) {
	first, end := c.visible(f)
	per := 1.0
	if p.Rate {
		per = 1 / c.Step.Seconds()
	}
	path := pathOf{area: p.Kind == "area"}
	for _, b := range decimate(values, first, end, points) {
		from, to := f.x(c.at(b.first)), f.x(c.at(b.end))
		value := b.avg
		if p.Use == "hi" {
			value = b.high
		}
		switch {
		case p.Kind == "band":
			if b.end-b.first > 1 && !math.IsNaN(value) {
				path.box(from, to, y(p.share(b.high*per)), y(p.share(b.low*per)))
			}
		case math.IsNaN(value):
			path.close()
		default:
			path.step(from, to, y(p.share(value*per)))
		}
	}
	path.close()
	p.D = path.String()
}

// pathOf is a path of an SVG while it is written.
type pathOf struct {
	strings.Builder
	area bool // it is closed along the bottom
	on   bool // a step was written, and the path goes on
	last int  // its height
}

func (d *pathOf) box(from, to, high, low int) {
	if low-high > 1 {
		fmt.Fprintf(d, "M%d %dH%dV%dH%dZ", from, high, to, low, from)
	}
}

func (d *pathOf) step(from, to, top int) {
	switch {
	case d.on && top == d.last:
		fmt.Fprintf(d, "H%d", to)
	case d.on:
		fmt.Fprintf(d, "V%dH%d", top, to)
	case d.area:
		fmt.Fprintf(d, "M%d %dV%dH%d", from, height, top, to)
	default:
		fmt.Fprintf(d, "M%d %dH%d", from, top, to)
	}
	d.on, d.last = true, top
}

// close ends the path at a hole, or at its end.
func (d *pathOf) close() {
	if d.on && d.area {
		fmt.Fprintf(d, "V%dZ", height)
	}
	d.on = false
}

// leastBar is the width of a bar at least, in units of the drawing: about 1.2 pixels.
const leastBar = 14

// bars returns the paths of the errors, one for each class, stacked on those before it: of each
// bucket the step with the most errors.
func (c *Columns) bars(f frame, scale level) (paths []string) {
	first, end := c.visible(f)
	d := make([]strings.Builder, len(c.Errors))
	per := 1 / c.Step.Seconds()
	for _, b := range c.worst(first, end, points) {
		from, to := f.x(c.at(b[0])), f.x(c.at(b[1]))
		base := 0.0
		for k := range c.Errors {
			n := c.Errors[k].Counts[b[2]]
			if n > 0 {
				low, high := y(scale.share(base*per)), y(scale.share((base+n)*per))
				fmt.Fprintf(&d[k], "M%d %dV%dH%dV%dZ", from, low, high, max(to, from+leastBar), low)
			}
			base += n
		}
	}
	for k := range d {
		paths = append(paths, d[k].String())
	}
	return paths
}

// visible is the steps [first, end) that a frame shows, with one on each side.
func (c *Columns) visible(f frame) (first, end int) {
	first = max(0, int(f.from/c.Step)-1)
	end = min(c.Len(), int((f.to+c.Step-1)/c.Step)+1)
	return min(first, end), end
}

// at is the begin of a step.
func (c *Columns) at(i int) time.Duration {
	return time.Duration(i) * c.Step
}
