package codec

import (
	"errors"
	"math"
	"slices"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	var b []byte
	b = AppendInt(b, math.MinInt64)
	b = AppendUint(b, math.MaxUint64)
	b = AppendFloat(b, -0.5)
	b = AppendText(b, "é")
	b = AppendText(b, "")
	b = AppendBool(b, true)
	b = AppendList(b, []int64{-1, 300}, func(dst []byte, n *int64) []byte { return AppendInt(dst, *n) })
	b = AppendUint(b, 7)
	r := NewReader(b)
	if v := r.Int(); v != math.MinInt64 {
		t.Errorf("Int is %d", v)
	}
	if v := r.Uint(); v != math.MaxUint64 {
		t.Errorf("Uint is %d", v)
	}
	if v := r.Float(); v != -0.5 {
		t.Errorf("Float is %v", v)
	}
	if v, none := r.Text(), r.Bytes(); v != "é" || none != nil {
		t.Errorf("texts are %q and %v", v, none)
	}
	if !r.Bool() {
		t.Error("Bool is false")
	}
	if v := ReadList(r, 1, func(n *int64) { *n = r.Int() }); !slices.Equal(v, []int64{-1, 300}) {
		t.Errorf("the list is %v", v)
	}
	if v := r.Below(8); v != 7 || r.Left() != 0 || r.End() != nil {
		t.Errorf("Below is %d, %d bytes left, error %v", v, r.Left(), r.End())
	}
}

// The first error stays, and zeros follow it.
func TestDamage(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(*Reader){
		"a number that is cut short": func(r *Reader) { r.Int() },
		"a float that is cut short":  func(r *Reader) { r.Float() },
		"more items than bytes":      func(r *Reader) { r.Uint(); r.Count(1) },
		"a number that is too large": func(r *Reader) { r.Uint(); r.Below(100) },
		"neither true nor false":     func(r *Reader) { r.Uint(); r.Bool() },
		"bytes that are left":        func(r *Reader) { r.Uint(); _ = r.End() },
	} {
		b := []byte{1, 100}
		if name == "a number that is cut short" {
			b = []byte{0x80}
		}
		r := NewReader(b)
		read(r)
		first := r.Err()
		if !errors.Is(first, ErrCorrupt) || r.Uint() != 0 || r.Text() != "" || !errors.Is(r.End(), first) {
			t.Errorf("%s: error %v, then %v", name, first, r.End())
		}
	}
}
