package merged

import (
	"slices"
	"testing"
)

func TestHolesAreEncoded(t *testing.T) {
	s := newTestSeries(2)
	addAll(t, s, 0, silentFor(10))
	addAll(t, s, 1, silentFor(10))
	s.AddHole(1, 2, 5)
	s.AddHole(0, 7, 8)
	b, err := s.Encode(0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	want := []Hole{{Pod: 1, From: 2 * testStep, To: 5 * testStep}, {From: 7 * testStep, To: 8 * testStep}}
	if err != nil || !slices.Equal(got.Holes(), want) {
		t.Errorf("%v, %v, want %v", got.Holes(), err, want)
	}
	if text := want[0].String(); text != "pod 1 had to forget its record from "+(2*testStep).String()+" to "+
		(5*testStep).String()+" before it could be pulled: it counts as zero there" {
		t.Error(text)
	}
	for i := range int64(100) {
		s.AddHole(0, i, i+1)
	}
	holes := s.Holes()
	if last := holes[len(holes)-1]; len(holes) != maxHoles || last.To != 100*testStep {
		t.Errorf("%d holes, the last is %v", len(holes), last)
	}
}

func TestCorruptHolesAreRefused(t *testing.T) {
	for name, holes := range map[string][]Hole{
		"another pod":      {{Pod: 1, To: 1}},
		"backwards":        {{From: 2, To: 1}},
		"before the start": {{From: -1}},
	} {
		s := newTestSeries(1)
		addAll(t, s, 0, silentFor(3))
		s.holes = holes
		b, err := s.Encode(0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(b); err == nil {
			t.Errorf("%s: decoded", name)
		}
	}
}
