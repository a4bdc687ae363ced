package curve

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"html/template"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redquake/redquake/internal/report"
)

// lane is the phases of a recovery that belong to one owner.
type lane struct {
	Name, Sum, Share string
	Owner            report.Owner
	Segments         []segment
}

// segment is one phase in a lane.
type segment struct {
	Owner       report.Owner
	Left, Width string
	Text        string
	Length      string
	// Classes by which a label is hidden where it does not fit; never = it is nowhere. The name and
	// the length stand in the segment, or together beside it.
	Name, Inside, Beside string
	LabelAt              string
	Sooner               *span

	from, to float64 // as a share of the frame
}

// The room for labels, in pixels: a character of a label, and the space around it.
const (
	character = 7.2
	padding   = 16.0
)

// never is the class of what is not shown.
const never = ""

// rooms are the classes of what is hidden in narrow drawings, with the width that a lane has at
// least where it is not.
var rooms = []struct {
	class string
	lane  float64
}{{"any", 288}, {"w5", 360}, {"w7", 540}, {"w10", 800}}

// fits is the class of a text in a share of a lane, and the share that it takes.
func fits(text string, share float64) (class string, takes float64) {
	need := float64(utf8.RuneCountInString(text))*character + padding
	for _, r := range rooms {
		if need/r.lane <= share {
			return r.class, need / r.lane
		}
	}
	return never, 0
}

func lanes(f frame, fault *Fault) (list []lane) {
	whole := fault.until(f.to) - fault.At
	for _, owner := range []struct {
		owner report.Owner
		name  string
	}{
		{report.Kubernetes, "Kubernetes"},
		{report.Redis, "Redis"},
		{report.Client, "Clients"},
		{report.ByFault, "Fault"},
		{report.Nobody, "Unexplained"},
	} {
		l := lane{Owner: owner.owner, Name: owner.name}
		var total time.Duration
		for _, p := range fault.Phases {
			if p.Owner != owner.owner || p.To <= p.From {
				continue
			}
			total += p.To - p.From
			l.Segments = append(l.Segments, segmentOf(f, &p))
		}
		if total == 0 {
			continue
		}
		l.Sum = report.Duration(total)
		l.Share = report.Share(math.Round(100*float64(total)/float64(max(1, whole))) / 100)
		label(l.Segments)
		list = append(list, l)
	}
	return list
}

func segmentOf(f frame, p *Phase) segment {
	where := f.span("", p.From, p.To)
	s := segment{
		Owner:  p.Owner,
		Left:   where.Left,
		Width:  where.Width,
		Text:   p.Name,
		Length: report.Duration(p.To - p.From),
		from:   f.share(p.From),
		to:     min(1, f.share(p.To)),
	}
	if p.Sooner > 0 {
		w := f.span("", p.To-p.Sooner, p.To)
		s.Sooner = &w
	}
	return s
}

// label places the labels of a lane: in the segment, else after or before it, else nowhere, as the
// table has them all.
func label(segments []segment) {
	taken := 0.0 // by a segment or a label, until here
	for i := range segments {
		s := &segments[i]
		next := 1.0
		if i+1 < len(segments) {
			next = segments[i+1].from
		}
		both := s.Text + " " + s.Length
		s.Name, _ = fits(both, s.to-s.from)
		if s.Name == never {
			class, takes := fits(both, next-s.to)
			if class != never {
				s.Beside, s.LabelAt = class, percent(s.to)
				taken = s.to + takes
				continue
			}
		}
		s.Inside, _ = fits(s.Length, s.to-s.from)
		if s.Inside == never {
			class, _ := fits(both, s.from-taken)
			if class != never {
				s.Beside, s.LabelAt = "l "+class, percent(s.from)
			}
		}
		taken = max(taken, s.to)
	}
}

// Column describes a packed column to the script.
type Column struct {
	Name string  `json:"name"`
	Log  bool    `json:"log,omitempty"` // a latency: 1 + 2520 log2(us), 0 = none
	By   float64 `json:"by,omitempty"`  // a count is the stored number times this; absent = 1
}

// perOctave is how many numbers a latency has from one to its double: all up to 67 s have one of 16
// bits, exact to 0.03 %.
const perOctave = 2520

// Pack writes the columns one after the other, each value in 16 bits, little endian, compressed, as
// base64.
func (c *Columns) Pack() (columns []Column, packed string) {
	var raw bytes.Buffer
	put := func(x float64) {
		raw.Write(binary.LittleEndian.AppendUint16(nil,
			uint16(min(max(math.Round(x), 0), math.MaxUint16))))
	}
	counts := func(name string, values []float64) {
		by := 1.0
		for _, x := range values {
			by = max(by, math.Ceil(x/math.MaxUint16))
		}
		column := Column{Name: name}
		if by > 1 {
			column.By = by
		}
		columns = append(columns, column)
		carry := 0.0 // what rounding leaves is part of the next value: spread counts add up
		for _, x := range values {
			whole := math.Round(x/by + carry)
			carry += x/by - whole
			put(whole)
		}
	}
	latency := func(name string, values []float64) {
		columns = append(columns, Column{Name: name, Log: true})
		for _, ms := range values {
			if math.IsNaN(ms) || ms <= 0 {
				put(0)
				continue
			}
			put(1 + perOctave*math.Log2(max(1, ms*1000)))
		}
	}
	counts("ok", c.OK)
	for _, class := range c.Errors {
		counts(class.Name, class.Counts)
	}
	latency("p50", c.P50)
	latency("p99", c.P99)
	latency("max", c.Max)
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is a constant
	}
	if _, err := z.Write(raw.Bytes()); err != nil {
		panic(err) // a buffer takes everything
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return columns, base64.StdEncoding.EncodeToString(out.Bytes())
}

// Markup is a drawing as HTML.
type Markup = template.HTML

// Part is one part of a divided bar.
type Part struct {
	Name, Detail string
	Count        int64
	Class        int // of errors; 0 = no error
}

// Text is the count and the name.
func (p Part) Text() string {
	return report.Count(p.Count) + " " + p.Name
}

// Split draws a bar that is divided by counts.
func Split(parts []Part) Markup {
	var total int64
	var names []string
	for _, p := range parts {
		total += p.Count
		names = append(names, p.Text())
	}
	type shown struct {
		Part
		Wide bool // there is room for its name below it
	}
	var list []shown
	for _, p := range parts {
		list = append(list, shown{p, float64(p.Count) >= .12*float64(total)})
	}
	return execute("split", map[string]any{
		"Parts": list,
		"Label": "Of " + report.Count(total) + " requests not answered in their time: " +
			strings.Join(names, ", ") + ".",
	})
}
