package merged

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/codec"
	"github.com/redquake/redquake/internal/record/columns"
	"github.com/redquake/redquake/internal/record/readings"
	"github.com/redquake/redquake/internal/record/silence"
)

const (
	// seriesVersion is the first byte of an encoded record. A change of the encoding after a release
	// increases it, keeps Decode able to read the versions that were released, and adds a file to
	// testdata: see TestSeriesVersions.
	seriesVersion = 1
	// maxRawSeries bounds a record before compression, for decoding and therefore for encoding.
	maxRawSeries = 128 << 20
	// packLevel is the gzip level: the default, 6, takes two to seven times as long and saves one to
	// eight percent.
	packLevel = 4
)

// Encode returns the record, with everything needed to continue adding to it, compressed to at most
// limit bytes; limit <= 0 means no limit.
// A record that is too large is first coarsened as by Coarsen, on a copy with a note, until it
// fits. The error means that even the coarsest record does not fit.
//
// The format is gzip, whose checksum detects corruption, around columns of differences: the values
// of one figure in all intervals are adjacent.
func (s *Series) Encode(limit int) ([]byte, error) {
	packed, _, err := s.encode(limit)
	return packed, err
}

// EncodeCompact is Encode that also returns the coarsened record as a separate series; nil if
// nothing was coarsened. A caller that encodes a growing record repeatedly should add to both and
// from then on encode the compact one: its size, and thus the cost, is bounded by the limit,
// whereas coarsening the whole record each time becomes more and more expensive.
func (s *Series) EncodeCompact(limit int) (packed []byte, compact *Series, err error) {
	packed, coarse, err := s.encode(limit)
	if err != nil || coarse == s {
		return packed, nil, err
	}
	compact, err = Decode(packed) // coarse shares memory with s
	return packed, compact, err
}

// encode also returns the series that was encoded: s, or a coarser one that shares its memory.
func (s *Series) encode(limit int) ([]byte, *Series, error) {
	if limit <= 0 {
		limit = math.MaxInt
	}
	c := s
	for {
		raw, parts := c.appendRaw()
		if len(raw) <= maxRawSeries {
			packed := pack(raw)
			if len(packed) <= limit {
				return packed, c, nil
			}
		}
		if c == s {
			c = s.shallow()
		}
		if !c.coarsen(parts, 0, fmt.Sprintf("the record fits %d KiB", limit>>10)) {
			return nil, nil, fmt.Errorf(
				"record takes %d bytes at its coarsest, before compression; allowed are %d", len(raw), limit)
		}
	}
}

// shallow copies the parts of s that coarsening modifies.
func (s *Series) shallow() *Series {
	c := *s
	c.Notes, c.windows = slices.Clone(s.Notes), slices.Clone(s.windows)
	if s.fine != nil {
		c.fine = &fine{s.fine.sealed, s.fine.group, s.fine.tail, slices.Clone(s.fine.blocks)}
	}
	c.pods = slices.Clone(s.pods)
	for i := range c.pods {
		c.pods[i].shards = slices.Clone(c.pods[i].shards)
		c.pods[i].parts = slices.Clone(c.pods[i].parts)
		c.pods[i].probes = slices.Clone(c.pods[i].probes)
	}
	c.observed.servers = s.observed.servers.Copy()
	c.common.probeShards, c.common.shards, c.common.parts = slices.Clone(s.common.probeShards),
		slices.Clone(s.common.shards), slices.Clone(s.common.parts)
	for _, m := range c.mergings() {
		m.Gaps = slices.Clip(m.Gaps)
	}
	c.intervals = slices.Clone(s.intervals)
	for i := range c.intervals {
		c.intervals[i].Ops = slices.Clone(c.intervals[i].Ops)
	}
	return &c
}

func pack(raw []byte) []byte {
	var b bytes.Buffer
	b.WriteByte(seriesVersion)
	w, err := gzip.NewWriterLevel(&b, packLevel)
	if err == nil {
		_, err = w.Write(raw)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // writing to a bytes.Buffer does not fail
	}
	return b.Bytes()
}

// IsEncoded reports whether b begins as the output of Encode does, of any version. No text does.
func IsEncoded(b []byte) bool {
	return len(b) > 3 && b[0] > 0 && b[0] < ' ' && b[1] == 0x1f && b[2] == 0x8b
}

// Decode reads what Encode wrote. Any other input gives an error that wraps codec.ErrCorrupt,
// unless it is of a version to come.
func Decode(b []byte) (*Series, error) {
	if IsEncoded(b) && b[0] > seriesVersion {
		return nil, fmt.Errorf(
			"the record is of version %d, which a newer redquake wrote: this one reads version %d, a newer one reads it",
			b[0], seriesVersion)
	}
	if len(b) == 0 || b[0] != seriesVersion {
		return nil, codec.Corrupt("not a series of version %d", seriesVersion)
	}
	z, err := gzip.NewReader(bytes.NewReader(b[1:]))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", codec.ErrCorrupt, err)
	}
	raw, err := io.ReadAll(io.LimitReader(z, maxRawSeries+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", codec.ErrCorrupt, err)
	}
	if len(raw) > maxRawSeries {
		return nil, codec.Corrupt("longer than %d bytes", maxRawSeries)
	}
	return decodeRaw(raw)
}

// decodeRaw reads a record before compression.
func decodeRaw(raw []byte) (*Series, error) {
	r := codec.NewReader(raw)
	s := readSeries(r)
	if err := r.End(); err != nil {
		return nil, err
	}
	s.observed.resume()
	return s, nil
}

// Snapshot is a record as it was at an instant.
type Snapshot struct{ raw []byte }

// Snapshot copies the record. As it does not compress, it takes a small part of the time of Encode,
// and as much memory as the record.
func (s *Series) Snapshot() Snapshot {
	raw, _ := s.appendRaw()
	return Snapshot{raw}
}

// Series returns the record as a series of its own.
func (s Snapshot) Series() (*Series, error) {
	return decodeRaw(s.raw)
}

// appendRaw returns the record before compression, and how many bytes of it are which part.
func (s *Series) appendRaw() (raw []byte, parts sizes) {
	for _, list := range s.gapLists() {
		parts.gaps += len(record.AppendGaps(nil, *list)) - 1
	}
	raw = s.appendState(nil)
	parts.others = len(raw) - parts.gaps
	raw = s.table().AppendFigures(raw)
	parts.counts = len(raw) - parts.others - parts.gaps
	n := len(raw)
	raw = s.table().AppendHistograms(raw)
	parts.histograms = len(raw) - n
	raw = appendHoles(raw, s.holes)
	n = len(raw)
	raw = s.appendFine(raw)
	parts.fine = len(raw) - n
	return raw, parts
}

// table is the intervals at the resolution of the series.
func (s *Series) table() columns.Table {
	return columns.Table{
		Intervals: s.intervals,
		Step:      s.Step,
		Every:     int(s.LatencyStep / s.Step),
	}
}

func readSeries(r *codec.Reader) *Series {
	s := readState(r)
	if r.Err() != nil {
		return nil
	}
	s.table().ReadFigures(r)
	s.table().ReadHistograms(r)
	s.holes = readHoles(r, s.Pods)
	if readFine(r, s); r.Err() != nil {
		return nil
	}
	held := s.delivered()
	if s.fine != nil {
		held = s.fine.sealed
	}
	n, share := int64(len(s.intervals)), s.share()
	if held/share > n || (held+share-1)/share != n {
		r.Fail("%d intervals of %v, pods delivered %d of %v", n, s.Step, held, s.PodStep)
		return nil
	}
	return s
}

func (s *Series) appendState(b []byte) []byte {
	b = codec.AppendText(b, s.Run)
	b = codec.AppendInt(b, s.Start.UnixNano())
	b = codec.AppendInt(b, int64(s.PodStep))
	b = codec.AppendInt(b, int64(s.Step))
	b = codec.AppendInt(b, int64(s.LatencyStep))
	for _, list := range [][]string{s.Ops, s.Tallies, s.Notes} {
		b = codec.AppendList(b, list, func(b []byte, t *string) []byte { return codec.AppendText(b, *t) })
	}
	for _, only := range s.readOnly {
		b = codec.AppendBool(b, only)
	}
	b = codec.AppendInt(b, int64(s.ClockUncertainty))
	b = codec.AppendInt(b, int64(s.ClockSpread))
	b = codec.AppendUint(b, s.requests)
	b = codec.AppendUint(b, uint64(len(s.pods)))
	for i := range s.pods {
		p := &s.pods[i]
		b = codec.AppendInt(b, p.next)
		b = codec.AppendBool(b, p.lost)
		b = codec.AppendBool(b, p.finished)
		b = codec.AppendInt(b, int64(p.connections))
		b = codec.AppendInt(b, p.ahead)
		b = silence.AppendStream(b, &p.load)
		b = silence.AppendStream(b, &p.probe)
		b = codec.AppendList(b, p.probes, silence.AppendStream)
		b = silence.AppendPartStreams(b, p.shards)
		b = silence.AppendPartStreams(b, p.parts)
		b = record.AppendStalls(b, p.stalls)
		b = record.AppendCheck(b, &p.ledger)
		b = s.observed.agents.AppendPod(b, i)
	}
	b = appendMergings(b, s)
	b = s.observed.agents.AppendGrid(b)
	b = s.observed.servers.Append(b)
	b = s.observed.podUses.Append(b)
	b = codec.AppendText(b, string(s.Result))
	return codec.AppendUint(b, uint64(len(s.intervals)))
}

func readState(r *codec.Reader) *Series {
	s := &Series{
		common: common{foldAt: leastFold},
		Run:    r.Text(),
		Start:  time.Unix(0, r.Int()).UTC(),
	}
	s.PodStep = time.Duration(r.Int())
	s.Step = time.Duration(r.Int())
	s.LatencyStep = time.Duration(r.Int())
	s.Ops, s.Tallies, s.Notes = r.Texts(), r.Texts(), r.Texts()
	s.readOnly = make([]bool, len(s.Ops))
	for i := range s.readOnly {
		s.readOnly[i] = r.Bool()
	}
	s.ClockUncertainty = time.Duration(r.Int())
	s.ClockSpread = time.Duration(r.Int())
	s.requests = r.Uint()
	readPods(r, s)
	readMergings(r, s)
	if s.observed.agents.ReadGrid(r); r.Err() != nil {
		return nil
	}
	s.observed.servers = readings.ReadServers(r)
	s.observed.podUses = readings.ReadPodUses(r)
	s.Result = slices.Clone(r.Bytes()) // not all of the input
	// Each interval has at least one byte per figure of each operation, one per tally, and one for its
	// shards.
	n := r.Count((len(s.Ops)+1)*10 + len(s.Tallies) + 1)
	if s.Pods == 0 || s.PodStep <= 0 || s.Step <= 0 || s.Step%s.PodStep != 0 || s.LatencyStep <= 0 ||
		s.LatencyStep%s.Step != 0 {
		r.Fail("%d pods, steps %v, %v and %v", s.Pods, s.PodStep, s.Step, s.LatencyStep)
		return nil
	}
	s.intervals = make([]record.Interval, n)
	for i := range s.intervals {
		s.intervals[i] = s.newInterval(int64(i))
	}
	return s
}

// pods reads the state of each pod.
func readPods(r *codec.Reader, s *Series) {
	s.Pods = r.Count(5 + 2*4 + 4)
	s.pods, s.observed.agents = make([]podRecord, s.Pods), readings.NewAgents(s.Pods)
	for i := range s.pods {
		p := &s.pods[i]
		p.next = r.Int()
		p.lost = r.Bool()
		p.finished = r.Bool()
		p.connections = int(r.Int())
		p.ahead = r.Int()
		silence.ReadStream(r, &p.load)
		silence.ReadStream(r, &p.probe)
		p.probes = silence.ReadStreams(r)
		p.shards = silence.ReadPartStreams(r)
		p.parts = silence.ReadPartStreams(r)
		p.stalls = record.ReadStalls(r)
		record.ReadCheck(r, &p.ledger)
		s.observed.agents.ReadPod(r, i)
		if p.next < 0 {
			r.Fail("pod %d at interval %d", i, p.next)
		}
	}
}
