package collect

import (
	"errors"
	"sync"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

// maxNotes bounds the notes of a series.
const maxNotes = 50

// recording is the record of a run, and the lock that guards it. Callers of its methods hold that.
type recording struct {
	sync.RWMutex
	series *merged.Series
	// a coarser copy of the record for checkpoints; nil as long as the record itself fits
	compact *merged.Series
	grown   bool // the series has changed since the last checkpoint
}

// merged applies do to the record and to the compact one, if there is one.
func (r *recording) merged(do func(*merged.Series)) {
	do(r.series)
	if r.compact != nil {
		do(r.compact)
	}
}

// note adds a note to the series.
func (r *recording) note(sentence string) {
	r.merged(func(series *merged.Series) {
		switch n := len(series.Notes); {
		case n < maxNotes:
			series.Notes = append(series.Notes, sentence)
		case n == maxNotes:
			series.Notes = append(series.Notes, "Further notes were left out.")
		}
	})
}

// memory is the size of the record and of its copy in bytes.
func (r *recording) memory() int {
	used := r.series.Memory()
	if r.compact != nil {
		used += r.compact.Memory()
	}
	return used
}

// ended reports whether a pod's record has ended in the series.
func (r *recording) ended(pod int) bool {
	beyond := record.Interval{
		Index: r.series.Next(pod) + 1,
		Ops:   make([]record.Op, len(r.series.Ops)),
	}
	return errors.Is(r.series.Add(pod, &beyond), merged.ErrEnded)
}
