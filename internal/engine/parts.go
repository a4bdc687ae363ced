package engine

import "github.com/redquake/redquake/internal/record"

// parts are the bits of the gap logs: bit 0 is the load's, bit 1+p that of record.Part p. A load with one operation has only the first.
type parts struct {
	count int
	of    []uint64 // by operation
}

func partsOf(readOnly []bool) parts {
	p := parts{count: 1, of: make([]uint64, len(readOnly))}
	for op := range p.of {
		p.of[op] = 1
		if len(readOnly) > 1 {
			kind := record.Writes
			if readOnly[op] {
				kind = record.Reads
			}
			p.of[op] |= 2<<kind | 2<<record.OpPart(op)
		}
	}
	if len(readOnly) > 1 {
		p.count = 1 + int(record.OpPart(len(readOnly)))
	}
	return p
}
