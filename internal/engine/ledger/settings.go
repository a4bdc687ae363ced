package ledger

import (
	"slices"
	"strings"
)

// settingsOfPrimaries are the settings of the primaries of all shards: each with the addresses of
// those that have it.
type settingsOfPrimaries []struct {
	settings  string
	addresses []string
}

func (s *settingsOfPrimaries) add(address, settings string) {
	for i := range *s {
		if one := &(*s)[i]; one.settings == settings {
			one.addresses = append(one.addresses, address)
			return
		}
	}
	*s = append(*s, struct {
		settings  string
		addresses []string
	}{settings, []string{address}})
}

// String is the settings that all primaries have, or those of each with its address.
func (s settingsOfPrimaries) String() string {
	if len(s) == 1 {
		return s[0].settings
	}
	var parts []string
	for _, one := range s {
		parts = append(parts, strings.Join(slices.Sorted(slices.Values(one.addresses)), " and ")+": "+
			one.settings)
	}
	return strings.Join(parts, "; ")
}

// errorLog records when requests did not succeed: how many in each step of a grid.
type errorLog struct {
	spans []errorSpan // ascending, as instants come almost in order
	step  int64       // of the grid, in ns
}

type errorSpan struct {
	first, last int64
	count       uint64
}

// maxErrorSpans bounds the log: beyond it, the grid becomes coarser.
const maxErrorSpans = 4096

func (l *errorLog) add(at int64) {
	if l.step == 0 {
		l.step = 1_000_000
	}
	for len(l.spans) == maxErrorSpans && at/l.step > l.spans[maxErrorSpans-1].first/l.step {
		l.coarsen()
	}
	l.put(errorSpan{at, at, 1})
}

func (l *errorLog) coarsen() {
	l.step *= 2
	old := l.spans
	l.spans = l.spans[:0]
	for _, s := range old {
		l.put(s)
	}
}

// put merges a span into the last one if that is in the same step of the grid, or in a later one.
func (l *errorLog) put(s errorSpan) {
	if n := len(l.spans); n > 0 {
		last := &l.spans[n-1]
		if s.first/l.step <= last.first/l.step {
			last.first, last.last = min(last.first, s.first), max(last.last, s.last)
			last.count += s.count
			return
		}
	}
	l.spans = append(l.spans, s)
}

// between counts the errors of all spans that touch [from, to].
func (l *errorLog) between(from, to int64) uint64 {
	var count uint64
	for _, s := range l.spans {
		if s.first <= to && s.last >= from {
			count += s.count
		}
	}
	return count
}
