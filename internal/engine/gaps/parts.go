package gaps

import "github.com/redquake/redquake/internal/record"

// Parts are the bits of the gap logs: bit 0 is the load's, bit 1+p that of record.Part p. A load
// with one operation has only the first.
type Parts struct {
	Count int
	Of    []uint64 // by operation
}

// PartsOf returns the parts of a load, by whether each of its operations only reads.
func PartsOf(readOnly []bool) Parts {
	p := Parts{Count: 1, Of: make([]uint64, len(readOnly))}
	for op := range p.Of {
		p.Of[op] = 1
		if len(readOnly) > 1 {
			kind := record.Writes
			if readOnly[op] {
				kind = record.Reads
			}
			p.Of[op] |= 2<<kind | 2<<record.OpPart(op)
		}
	}
	if len(readOnly) > 1 {
		p.Count = 1 + int(record.OpPart(len(readOnly)))
	}
	return p
}
