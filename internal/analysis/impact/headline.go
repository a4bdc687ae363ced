package impact

import "github.com/redquake/redquake/internal/analysis/durations"

// What an outage is of, beside Reads and Writes.
const (
	Load  = "Load"  // all requests
	Shard = "Shard" // those to one shard
	Probe = "Probe" // those of the probe, which opens new connections
)

// All is what a dip is of, beside Reads and Writes.
const All = "All"

// Outage is the outage of a fault. Its bounds are the greatest of those of the parts that it is the
// longest of.
type Outage struct {
	durations.Bounded
	Of    string // Load, Reads, Writes, Shard or Probe
	Shard int    // which one, if it is of a Shard
}

// Outages are the outages of the load and of its parts: each the longest time without a success in
// which a request waited in vain. A value of -1 is of a part that there is not: the load only reads
// or only writes, has one shard, or is not probed.
type Outages struct {
	Load, Reads, Writes durations.Bounded
	Shard               ShardOutage       // the longest of any shard
	Probe               durations.Bounded // at any shard
}

// ShardOutage is the outage of a shard.
type ShardOutage struct {
	durations.Bounded
	Shard int
}

// Longest is the outage of the fault: that of the load, or the longest of those parts of which it
// is proven that they had none for longer. A part with few requests has a longer gap around the
// same outage, which proves nothing.
func (o *Outages) Longest() Outage {
	longest := o.longest(Outage{Bounded: o.Shard.Bounded, Of: Shard, Shard: o.Shard.Shard}, Outage{
		Bounded: o.Probe,
		Of:      Probe,
	})
	// that an outage of these was not seen does not exclude it
	for _, part := range []durations.Bounded{o.Shard.Bounded, o.Probe} {
		longest.AtMost = max(longest.AtMost, part.AtMost)
	}
	return longest
}

// OfRequests is the outage of the load, its reads or its writes, through their own connections,
// wherever they go.
func (o *Outages) OfRequests() Outage {
	return o.longest()
}

// kind is the outage of reads or of writes.
func (o *Outages) kind(kind string) *durations.Bounded {
	if kind == Reads {
		return &o.Reads
	}
	return &o.Writes
}

// longest is that of the load, its reads, its writes and others.
func (o *Outages) longest(others ...Outage) Outage {
	longest := Outage{Bounded: o.Load, Of: Load}
	for _, part := range append([]Outage{
		{Bounded: o.Writes, Of: Writes},
		{Bounded: o.Reads, Of: Reads},
	}, others...) {
		if longer(part.Bounded, o.Load, longest.Bounded) {
			longest = Outage{
				Bounded: longest.Max(part.Bounded),
				Of:      part.Of,
				Shard:   part.Shard,
			}
		}
		longest.AtLeast = max(longest.AtLeast, part.AtLeast)
	}
	return longest
}

// longer reports whether the outage of a part is provably longer than that of the load, and longer
// than the longest so far.
func longer(part, load, longest durations.Bounded) bool {
	return part.AtLeast > load.Value && part.Value > longest.Value
}

// Dip is the dip of a fault: the lowest throughput, as a share of the baseline that is missing.
type Dip struct {
	Value float64 // in [0, 1]
	Of    string  // All, Reads or Writes
}

// Dips are the dips of all requests, of those that read and of the others. NaN is of a part that
// there is not, or of which too little is known; see Effect.
type Dips struct{ All, Reads, Writes float64 }
