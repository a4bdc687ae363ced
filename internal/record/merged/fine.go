package merged

import (
	"math"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/codec"
	"github.com/redquake/redquake/internal/record/columns"
)

const (
	// fineLatencyStep is the least step of histograms in the part that is kept at full resolution: an
	// interval's own are rarely needed.
	fineLatencyStep = time.Second
	// groupsPerBlock is how many histograms per operation a block has.
	groupsPerBlock = 10
	// tailSpan is the length of the newest part that is kept at full resolution: a fault's baseline is
	// known only once it is injected.
	tailSpan = 3 * time.Minute
	// maxWindows bounds the number of windows.
	maxWindows = 256
)

// fine is what a coarsened record keeps at full resolution: its newest part, and the windows around
// faults. Pods' intervals are merged here, and added to the coarse record a block at a time, once
// every live pod has delivered it.
type fine struct {
	sealed int64   // all intervals of PodStep before this one are in the coarse record
	group  int64   // how many intervals share a histogram, which is in the first of them
	tail   int64   // length of the newest part, in nanoseconds
	blocks []block // ascending: those that are not sealed, and those to be kept
}

// block is consecutive intervals of PodStep, from number x blockLen on, as far as they were
// delivered.
type block struct {
	number    int64
	partial   bool // the first of its intervals are not here
	intervals []record.Interval
}

// window is a part of the run to be kept at full resolution.
type window struct {
	id       string
	from, to int64
}

// Keep asks to keep the part [from, to) at full resolution when the record is coarsened. It
// replaces an earlier call with the same id. Only what was delivered in the last three minutes, or
// is in another window, can still be kept.
func (s *Series) Keep(id string, from, to time.Duration) {
	w := window{id, int64(max(0, from)), int64(to)}
	i := slices.IndexFunc(s.windows, func(o window) bool { return o.id == id })
	if i >= 0 {
		s.windows[i] = w
		return
	}
	s.windows = append(s.windows, w)
	s.windows = s.windows[max(0, len(s.windows)-maxWindows):]
}

// Fine returns the record at full resolution if [from, to) was kept so, as far as it was delivered:
// a series that may begin later and end earlier than s. Otherwise it returns s. Both must not be
// modified as long as the result is used.
func (s *Series) Fine(from, to time.Duration) *Series {
	if s.fine == nil {
		return s
	}
	length := s.blockLen()
	span := length * int64(s.PodStep)
	most := s.delivered()
	first := int64(max(0, from)) / span
	last := min(int64(max(0, to)), (most-1)*int64(s.PodStep)) / span
	at, found := slices.BinarySearchFunc(s.fine.blocks, first, func(b block, number int64) int {
		return int(b.number - number)
	})
	if !found || s.fine.blocks[at].partial {
		return s
	}
	end := at + 1
	for end < len(s.fine.blocks) && !s.fine.blocks[end].partial &&
		s.fine.blocks[end].number == s.fine.blocks[end-1].number+1 {
		end++
	}
	if s.fine.blocks[end-1].number < last {
		return s
	}
	v := *s
	v.Step, v.LatencyStep = s.PodStep, time.Duration(s.fine.group)*s.PodStep
	none := s.newInterval(-1)
	v.view = &view{
		blocks: s.fine.blocks[at:end],
		length: length,
		end:    min(most, (s.fine.blocks[end-1].number+1)*length),
		none:   &none,
	}
	return &v
}

// view is the part of a record that is kept at full resolution, with the positions that its
// intervals have in the run.
type view struct {
	blocks      []block // consecutive
	length, end int64   // of a block; of the view, in intervals from the start of the run
	none        *record.Interval
}

func (v *view) at(i int64) *record.Interval {
	k := i/v.length - v.blocks[0].number
	if k >= 0 && k < int64(len(v.blocks)) && i%v.length < int64(len(v.blocks[k].intervals)) {
		return &v.blocks[k].intervals[i%v.length]
	}
	return v.none
}

// Coarse reports whether parts of the record are coarser than its pods recorded them, apart from
// histograms of 1 s.
func (s *Series) Coarse() bool {
	return s.fine != nil && s.view == nil
}

// fineGroup is the number of intervals of PodStep per fineLatencyStep.
func (s *Series) fineGroup() int64 {
	step := s.PodStep
	for step < fineLatencyStep {
		step = nextStep(step)
	}
	return int64(step / s.PodStep)
}

// blockLen is the number of intervals of a block.
func (s *Series) blockLen() int64 {
	return groupsPerBlock * s.fineGroup()
}

// delivered is the number of intervals of PodStep that any pod has delivered.
func (s *Series) delivered() int64 {
	most := int64(0)
	for i := range s.pods {
		most = max(most, s.pods[i].next)
	}
	return most
}

// split begins to keep parts of the record at full resolution, before it is coarsened for the first
// time.
func (s *Series) split() {
	if s.fine != nil || s.Step != s.PodStep {
		return
	}
	group, length := s.fineGroup(), s.blockLen()
	step := time.Duration(group) * s.PodStep
	if s.LatencyStep < step {
		s.mergeHistograms(step)
	}
	done := s.completeShares()
	s.fine = &fine{
		sealed: done,
		group:  group,
		tail:   int64(tailSpan),
	}
	if !s.Ended() {
		s.fine.sealed -= done % length
	}
	for first := int64(0); first < int64(len(s.intervals)); first += length {
		if number := first / length; s.keeps(number, done) {
			b := block{number: number}
			for i := range s.intervals[first:min(first+length, int64(len(s.intervals)))] {
				b.intervals = append(b.intervals, s.intervals[first+int64(i)].Clone())
			}
			s.fine.blocks = append(s.fine.blocks, b)
		}
	}
	s.intervals = slices.Clip(s.intervals[:s.fine.sealed])
}

// extend appends empty intervals until the block has n.
func (b *block) extend(s *Series, n int64) {
	for i := int64(len(b.intervals)); i < n; i++ {
		b.intervals = append(b.intervals, s.newInterval(b.number*s.blockLen()+i))
	}
}

// keeps reports whether a block is to be kept: it is not sealed, new, or part of a window. done is
// completeShares.
func (s *Series) keeps(number, done int64) bool {
	length := s.blockLen()
	end := (number + 1) * length
	if max(s.fine.sealed, end-length) < min(end, s.delivered()) ||
		s.fine.tail > 0 && (done-end)*int64(s.PodStep) < s.fine.tail {
		return true
	}
	from, to := (end-length)*int64(s.PodStep), end*int64(s.PodStep)
	return slices.ContainsFunc(s.windows, func(w window) bool { return w.from < to && from < w.to })
}

// fineAt returns an interval at full resolution; nil if it is not kept.
func (s *Series) fineAt(index int64) *record.Interval {
	at, found := s.blockAt(index / s.blockLen())
	i := index % s.blockLen()
	if found && i < int64(len(s.fine.blocks[at].intervals)) {
		return &s.fine.blocks[at].intervals[i]
	}
	return nil
}

// blockAt returns the position of a block, or that at which it is to be inserted.
func (s *Series) blockAt(number int64) (at int, found bool) {
	blocks := s.fine.blocks
	if n := len(blocks); n > 0 && blocks[n-1].number == number {
		return n - 1, true
	}
	return slices.BinarySearchFunc(blocks, number, func(b block, number int64) int {
		return int(b.number - number)
	})
}

// blockOf returns the block with an interval; it creates what is missing.
func (s *Series) blockOf(index int64) *block {
	length := s.blockLen()
	number := index / length
	at, found := s.blockAt(number)
	if !found {
		s.fine.blocks = slices.Insert(s.fine.blocks, at, block{
			number:  number,
			partial: s.fine.sealed > number*length,
		})
	}
	b := &s.fine.blocks[at]
	b.extend(s, index%length+1)
	return b
}

// seal adds the blocks that every live pod has delivered to the coarse record, and drops those that
// are not to be kept.
func (s *Series) seal() {
	if s.fine == nil {
		return
	}
	done := s.completeShares()
	if !s.Ended() {
		done -= done % s.blockLen()
	}
	if done > s.fine.sealed {
		s.sealTo(done)
		s.dropBlocks()
	}
}

// newest returns interval i of a coarsened record, with what is not yet part of the coarse one.
func (s *Series) newest(i int64) *record.Interval {
	share, group := s.share(), int64(s.LatencyStep/s.PodStep)
	first, end, groupEnd := i*share, (i+1)*share, i*share
	if first%group == 0 {
		groupEnd = first + group
	}
	if max(end, groupEnd) <= s.fine.sealed {
		return &s.intervals[i]
	}
	sum := s.newInterval(i)
	if i < int64(len(s.intervals)) {
		sum = s.intervals[i].Clone()
	}
	most := s.delivered()
	for k := max(first, s.fine.sealed); k < min(max(end, groupEnd), most); k++ {
		iv := s.fineAt(k)
		if iv == nil {
			continue
		}
		if k < end {
			sum.AddPart(iv, k == first)
		}
		if k < groupEnd {
			sum.MergeHistograms(iv)
		}
	}
	return &sum
}

// addCoarse adds an interval that all pods have delivered to the coarse record.
func (s *Series) addCoarse(iv *record.Interval) {
	share := s.share()
	i := iv.Index / share
	for int64(len(s.intervals)) <= i {
		s.intervals = append(s.intervals, s.newInterval(int64(len(s.intervals))))
	}
	s.intervals[i].AddPart(iv, iv.Index%share == 0)
	s.holder(i).MergeHistograms(iv)
}

// thinFine reduces what is kept at full resolution by a step: the histograms, then the oldest
// window that is over, then the newest part, then any.
// It returns false if nothing is left.
func (s *Series) thinFine() bool {
	if s.fine == nil {
		return false
	}
	if s.fine.group < s.blockLen() {
		s.regroup(s.blockLen())
		return true
	}
	end := s.completeShares() * int64(s.PodStep)
	drop := slices.IndexFunc(s.windows, func(w window) bool { return w.to <= end })
	switch {
	case drop < 0 && s.fine.tail > 0:
		if s.fine.tail /= 2; s.fine.tail < int64(time.Second) {
			s.fine.tail = 0
			s.sealCopy()
		}
	case len(s.windows) > 0:
		drop = max(drop, 0)
		s.windows = slices.Delete(slices.Clone(s.windows), drop, drop+1)
	default:
		return false
	}
	s.dropBlocks()
	return true
}

// sealCopy adds everything that every live pod has delivered to the coarse record, without changing
// memory that a copy of the series may share.
func (s *Series) sealCopy() {
	s.intervals = slices.Clone(s.intervals)
	first := s.fine.sealed * int64(s.PodStep) / int64(s.LatencyStep) * int64(s.LatencyStep/s.Step)
	for i := min(first, int64(len(s.intervals))); i < int64(len(s.intervals)); i++ {
		s.intervals[i] = s.intervals[i].Clone()
	}
	s.sealTo(s.completeShares())
}

// sealTo adds the intervals up to a position to the coarse record.
func (s *Series) sealTo(end int64) {
	for ; s.fine.sealed < end; s.fine.sealed++ {
		if iv := s.fineAt(s.fine.sealed); iv != nil {
			s.addCoarse(iv)
		}
	}
}

// dropBlocks drops the blocks that are not to be kept.
func (s *Series) dropBlocks() {
	done := s.completeShares()
	s.fine.blocks = slices.DeleteFunc(slices.Clone(s.fine.blocks), func(b block) bool {
		return !s.keeps(b.number, done)
	})
}

// regroup merges histograms in the blocks.
func (s *Series) regroup(group int64) {
	blocks := make([]block, len(s.fine.blocks))
	for i, b := range s.fine.blocks {
		part := Series{
			Ops:         s.Ops,
			PodStep:     s.PodStep,
			Step:        s.PodStep,
			LatencyStep: time.Duration(s.fine.group) * s.PodStep,
		}
		for k := range b.intervals {
			iv := b.intervals[k]
			iv.Ops = slices.Clone(iv.Ops)
			part.intervals = append(part.intervals, iv)
		}
		part.mergeHistograms(time.Duration(group) * s.PodStep)
		blocks[i] = block{b.number, b.partial, part.intervals}
	}
	s.fine.blocks, s.fine.group = blocks, group
}

// fineTable returns the intervals of all blocks, for encoding: of each block a whole number of
// groups.
func (s *Series) fineTable() columns.Table {
	f := columns.Table{Step: s.PodStep, Every: int(s.fine.group)}
	for _, b := range s.fine.blocks {
		b.intervals = slices.Clip(b.intervals)
		b.extend(s, s.wholeGroups(b.intervals))
		f.Intervals = append(f.Intervals, b.intervals...)
	}
	return f
}

// wholeGroups is the number of intervals, rounded up to whole groups.
func (s *Series) wholeGroups(intervals []record.Interval) int64 {
	return (int64(len(intervals)) + s.fine.group - 1) / s.fine.group * s.fine.group
}

func (s *Series) appendFine(b []byte) []byte {
	b = codec.AppendUint(b, uint64(len(s.windows)))
	for _, w := range s.windows {
		b = codec.AppendText(b, w.id)
		b = codec.AppendInt(b, w.from)
		b = codec.AppendInt(b, w.to)
	}
	b = codec.AppendBool(b, s.fine != nil)
	if s.fine == nil {
		return b
	}
	b = codec.AppendInt(b, s.fine.sealed)
	b = codec.AppendInt(b, s.fine.group)
	b = codec.AppendInt(b, s.fine.tail)
	b = codec.AppendUint(b, uint64(len(s.fine.blocks)))
	for _, block := range s.fine.blocks {
		b = codec.AppendInt(b, block.number)
		b = codec.AppendBool(b, block.partial)
		b = codec.AppendUint(b, uint64(len(block.intervals)))
	}
	f := s.fineTable()
	return f.AppendHistograms(f.AppendFigures(b))
}

func readFine(r *codec.Reader, s *Series) {
	for range r.Count(3) {
		s.windows = append(s.windows, window{r.Text(), r.Int(), r.Int()})
	}
	if !r.Bool() || r.Err() != nil {
		return
	}
	s.fine = &fine{
		sealed: r.Int(),
		group:  r.Int(),
		tail:   r.Int(),
	}
	length := s.blockLen()
	g := s.fine.group
	if g <= 0 || length%g != 0 || s.fine.sealed < 0 || s.fine.sealed > s.delivered() {
		r.Fail("%d sealed, histograms of %d", s.fine.sealed, g)
		return
	}
	before, room := int64(-1), r.Left()
	for range r.Count(3) {
		b := block{number: r.Int(), partial: r.Bool()}
		n := r.Uint()
		if room -= int(min(n, math.MaxInt32)) * (len(s.Ops) + 1) * 9; b.number <= before ||
			b.number > math.MaxInt32 || n > uint64(length) || room < 0 {
			r.Fail("block %d of %d intervals after %d", b.number, n, before)
			return
		}
		before = b.number
		b.extend(s, int64(n))
		s.fine.blocks = append(s.fine.blocks, b)
	}
	f := s.fineTable()
	f.ReadFigures(r)
	f.ReadHistograms(r)
	for i, at := 0, int64(0); i < len(s.fine.blocks); i++ {
		b := &s.fine.blocks[i]
		whole := s.wholeGroups(b.intervals)
		b.intervals = slices.Clip(f.Intervals[at : at+int64(len(b.intervals))])
		at += whole
	}
}
