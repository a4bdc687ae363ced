package curve

import (
	"math"
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
	Inside      bool   // its label fits into it
	Beside      string // the class of a label beside it; "" = none
	LabelAt     string
	Sooner      *span

	from, to float64 // as a share of the frame
}

// The room for labels, estimated for a figure of 940 pixels: a character of a label, and the space
// around it.
const (
	laneWidth = 940.0
	character = 6.2
	padding   = 14.0
)

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
		need := (float64(utf8.RuneCountInString(s.Text+" "+s.Length))*character + padding) / laneWidth
		short := (float64(utf8.RuneCountInString(s.Length))*character + padding) / laneWidth
		switch {
		case s.to-s.from >= need, s.to-s.from >= short && s.to-s.from >= .1:
			s.Inside = s.to-s.from >= need
			if !s.Inside && next-s.to >= need {
				s.Beside, s.LabelAt = "w5", percent(s.to)
				taken = s.to + need
				continue
			}
			s.Inside = true
		case next-s.to >= need:
			s.Beside, s.LabelAt = "w7", percent(s.to)
			taken = s.to + need
			continue
		case s.from-taken >= need:
			s.Beside, s.LabelAt = "l w10", percent(s.from)
		}
		taken = max(taken, s.to)
	}
}
