package curve

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"math"
)

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
