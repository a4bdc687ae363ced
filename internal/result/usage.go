package result

import (
	"math"
	"time"

	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/analysis/usage"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/merged"
)

// CPU is a usage of CPU, in millicores.
type CPU struct {
	Mean int64 `json:"meanMillicores"`
	Max  int64 `json:"maxMillicores"`
	// of each pod; absent if one has none, or it has no meaning
	Limit int64 `json:"limitMillicores,omitempty"`
}

// ServerUse is what one Redis server used over the measured time.
type ServerUse struct {
	Address       string  `json:"address"`
	Pod           string  `json:"pod,omitempty"`   // of a load in a cluster: the server's pod
	Role          string  `json:"role,omitempty"`  // primary | replica, at the last reading
	Shard         *int    `json:"shard,omitempty"` // of a cluster
	CPU           CPU     `json:"cpu"`
	MainThreadCPU *CPU    `json:"mainThreadCPU,omitempty"` // absent if the server does not report it
	Memory        int64   `json:"memoryBytes"`             // the highest used_memory
	RSS           int64   `json:"rssBytes"`                // the highest used_memory_rss
	BytesIn       float64 `json:"bytesInPerSecond"`        // from clients, replicas and primaries
	BytesOut      float64 `json:"bytesOutPerSecond"`
	// IOThreadedReads and IOThreadedWrites are the shares that I/O threads performed; absent if there
	// was none, or the server does not report them.
	IOThreadedReads  *float64 `json:"ioThreadedReads,omitempty"`
	IOThreadedWrites *float64 `json:"ioThreadedWrites,omitempty"`
	// in the slow log; absent if it could not be read
	SlowCommands *int64 `json:"slowCommands,omitempty"`
	// the longest of each command, the longest first
	Slowest  []SlowCommand `json:"slowest,omitempty"`
	Restarts int           `json:"restarts"`
}

// SlowCommand is the longest execution of a command, and how many there were.
type SlowCommand struct {
	Command string  `json:"command"` // its first word
	Took    Seconds `json:"tookSeconds"`
	At      Seconds `json:"atSeconds"` // from the load's start, of the reading that found it
	Count   int64   `json:"count"`     // executions that were read from the slow log
}

// RoundTrip is how long a PING takes between the load and Redis, beside the load's connections.
type RoundTrip struct {
	Idle *Seconds `json:"idleSeconds,omitempty"` // the shortest, before the load
	// the same of the load pod for which it is longest, if there are several
	Farthest *Seconds `json:"farthestSeconds,omitempty"`
	// in the measured time: the median of the shortest of each second; it waits for a busy Redis
	UnderLoad *Seconds `json:"underLoadSeconds,omitempty"`
	// ShareOfLatency is the network's part of the median latency: the shorter one of idle and
	// underLoad. Absent if requests go to another server, and if that PING is longer than the median
	// latency: it waited for something that requests do not wait for.
	ShareOfLatency *float64 `json:"shareOfLatency,omitempty"`
}

// PodsUse is what the observed pods of one name used over the measured time.
type PodsUse struct {
	Name   string `json:"name"`
	Count  int    `json:"count"`          // of pods with readings
	CPU    CPU    `json:"cpu"`            // of one pod
	Memory int64  `json:"maxMemoryBytes"` // of one pod: its working set
}

// setUsage sets what was used around the load in the window. serverLimit is
// LoadInput.ServerCPULimit.
func (r *Load) setUsage(p *plan.Plan, series *merged.Series, w usage.Window, serverLimit float64) {
	for _, s := range usage.Servers(series, w) {
		one := serverUse(&s)
		one.CPU.Limit = millicores(serverLimit)
		r.Servers = append(r.Servers, one)
	}
	if cpu, ok := usage.LoadPods(series, w); ok {
		r.LoadPodCPU = new(cpuOf(cpu))
	}
	for _, o := range usage.ObservedPods(series, w) {
		r.Pods = append(r.Pods, PodsUse{
			Name:   o.Name,
			Count:  o.Count,
			CPU:    cpuOf(o.CPU),
			Memory: o.Memory,
		})
	}
	trip, ok := usage.RoundTripOf(series, w)
	if !ok {
		return
	}
	r.RoundTrip = &RoundTrip{Idle: measured(trip.Idle), UnderLoad: measured(trip.UnderLoad)}
	if p.Pods > 1 {
		r.RoundTrip.Farthest = measured(trip.Farthest)
	}
	median := r.Total.median()
	in := bottleneck.Of(p, series)
	network := trip.Network() + in.AddedLatency
	if in.Backend == "" && network <= median {
		r.RoundTrip.ShareOfLatency = new(float64(network) / float64(median))
	}
}

// median is the median latency from the send; 0 without a success.
func (o *Operation) median() time.Duration {
	switch {
	case o.Service != nil:
		return time.Duration(o.Service.P50)
	case o.Latency != nil:
		return time.Duration(o.Latency.P50)
	}
	return 0
}

func measured(d time.Duration) *Seconds {
	if d == 0 {
		return nil
	}
	return new(Seconds(d))
}

func serverUse(s *usage.Server) ServerUse {
	out := ServerUse{
		Address:          s.Address,
		Role:             map[string]string{"master": "primary", "slave": "replica"}[s.Role],
		CPU:              cpuOf(s.CPU),
		Memory:           s.Memory,
		RSS:              s.RSS,
		BytesIn:          s.BytesIn,
		BytesOut:         s.BytesOut,
		IOThreadedReads:  known(s.IOThreadedReads),
		IOThreadedWrites: known(s.IOThreadedWrites),
		Restarts:         s.Restarts,
	}
	if s.Slow >= 0 {
		out.SlowCommands = &s.Slow
	}
	if s.Shard >= 0 {
		out.Shard = &s.Shard
	}
	if s.MainThreadCPU.Max > 0 {
		out.MainThreadCPU = new(cpuOf(s.MainThreadCPU))
	}
	for _, c := range s.Slowest {
		out.Slowest = append(out.Slowest, SlowCommand{
			Command: c.Command,
			Took:    Seconds(c.Took),
			At:      Seconds(c.At),
			Count:   c.Count,
		})
	}
	return out
}

// known returns a share, or nil if it is unknown.
func known(share float64) *float64 {
	if share < 0 {
		return nil
	}
	return &share
}

func cpuOf(c usage.CPU) CPU {
	return CPU{
		Mean:  millicores(c.Mean),
		Max:   millicores(c.Max),
		Limit: millicores(c.Limit),
	}
}

func millicores(cores float64) int64 {
	return int64(math.Round(1000 * cores))
}
