package report

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/result"
)

// Prose is text with emphasis. In JSON it is plain text.
type Prose []Span

// Span is a piece of text.
type Span struct {
	Text   string
	Strong bool
	Damage bool  // strong, in the colour of damage
	Owner  Owner // strong, in the colour of an owner
}

// Text is prose without emphasis.
func Text(s string) Prose {
	if s == "" {
		return nil
	}
	return Prose{{Text: s}}
}

// Add appends text.
func (p Prose) Add(s string) Prose {
	return append(p, Span{Text: s})
}

// Strong appends emphasized text.
func (p Prose) Strong(s string) Prose {
	return append(p, Span{Text: s, Strong: true})
}

// Damage appends text in the colour of damage.
func (p Prose) Damage(s string) Prose {
	return append(p, Span{Text: s, Damage: true})
}

// By appends text in the colour of an owner.
func (p Prose) By(o Owner, s string) Prose {
	return append(p, Span{Text: s, Owner: o})
}

// String is the text without emphasis.
func (p Prose) String() string {
	var b strings.Builder
	for _, s := range p {
		b.WriteString(s.Text)
	}
	return b.String()
}

// MarshalJSON writes the text.
func (p Prose) MarshalJSON() ([]byte, error) {
	return json.Marshal(plain(p.String()))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Prose) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	*p = Text(s)
	return nil
}

// Sentence ends text with one full stop.
func Sentence(s string) string {
	return strings.TrimSuffix(s, ".") + "."
}

// Plural is the end of a noun of which there are n.
func Plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// plain replaces the no-break spaces of typeset numbers, which programs do not expect.
func plain(s string) string {
	return strings.ReplaceAll(s, nbsp, " ")
}

// CountCell is a number of something.
func CountCell(n int64) Cell {
	return Cell{
		Text:  Count(n),
		Value: new(float64(n)),
		Unit:  result.UnitCount,
	}
}

// RateCell is a number per second in a column that says so.
func RateCell(x float64) Cell {
	return Cell{
		Text:  strings.TrimSuffix(Rate(x), "/s"),
		Value: new(x),
		Unit:  result.UnitPerSecond,
	}
}

// DurationCell is a duration.
func DurationCell(d time.Duration) Cell {
	return Cell{
		Text:  Duration(d),
		Value: new(d.Seconds()),
		Unit:  result.UnitSeconds,
	}
}

// SinceCell is a duration since an instant, with its sign.
func SinceCell(d time.Duration) Cell {
	return Cell{
		Text:  Since(d),
		Value: new(d.Seconds()),
		Unit:  result.UnitSeconds,
	}
}
