package digest

import (
	"strconv"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/result"
)

// Summary is the result of a load as its status has it.
func Summary(r *result.Load) *v1alpha1.LoadSummary {
	out := &v1alpha1.LoadSummary{
		Requests:      int64(r.Total.Requests),
		Errors:        int64(r.Total.Errors()),
		Failed:        int64(r.Total.Failed),
		Unknown:       int64(r.Total.Unknown),
		Dropped:       int64(r.Total.Dropped),
		ErrorsByClass: ErrorCounts(r.Errors),
		Drained:       int64(r.Total.Drained),
		Redirected:    int64(r.Total.Redirected),
		Latency:       latencyOf(r.Total.Latency),
		Shards:        shardsOf(r.Shards),
		Workload:      workloadOf(r.Workload),
	}
	if r.Total.Requests > 0 {
		out.ErrorRate = v1alpha1.DecimalOf(r.Total.ErrorRate)
		out.Throughput = v1alpha1.DecimalOf(r.Total.Throughput)
	}
	if r.MaxLag > 0 {
		out.MaxLag = new(duration(r.MaxLag))
	}
	if gap := r.Outage(); gap != nil {
		out.Outage = &v1alpha1.Outage{
			BoundedDuration: v1alpha1.BoundedDuration{
				Value:   duration(gap.Length),
				AtLeast: duration(gap.AtLeast),
				AtMost:  duration(gap.AtMost),
			}, Of: v1alpha1.OutageScope(gap.Of),
		}
		if gap.Of == impact.Shard {
			out.Outage.Shard = new(int32(gap.Shard))
		}
	}
	for i := range r.Operations {
		o := &r.Operations[i]
		out.Operations = append(out.Operations, v1alpha1.OperationSummary{
			Name:       o.Name,
			Requests:   int64(o.Requests),
			Errors:     int64(o.Errors()),
			Misses:     int64(o.Misses),
			Throughput: v1alpha1.DecimalOf(o.Throughput),
			Latency:    latencyOf(o.Latency),
		})
	}
	return out
}

// maxShards is the number of shards that a status can list.
const maxShards = 64

func shardsOf(shards []result.Shard) []v1alpha1.ShardSummary {
	var out []v1alpha1.ShardSummary
	for i, s := range shards[:min(len(shards), maxShards)] {
		one := v1alpha1.ShardSummary{
			Shard:      int32(i),
			Throughput: v1alpha1.DecimalOf(s.Throughput),
			Errors:     int64(s.Errors),
		}
		if s.LongestGap > 0 {
			one.LongestGap = new(duration(s.LongestGap))
		}
		out = append(out, one)
	}
	return out
}

func workloadOf(figures []result.Figure) []v1alpha1.WorkloadFigure {
	var out []v1alpha1.WorkloadFigure
	for _, f := range figures {
		w := v1alpha1.WorkloadFigure{Name: f.Name}
		switch {
		case f.Share != nil:
			w.Unit, w.Value = v1alpha1.UnitShare, v1alpha1.DecimalOf(*f.Share)
		case f.Seconds != nil:
			w.Unit, w.Value = v1alpha1.UnitSeconds, duration(*f.Seconds).InSeconds()
		case f.Count != nil:
			w.Unit = v1alpha1.UnitCount
			w.Value = v1alpha1.Decimal(strconv.FormatUint(*f.Count, 10))
		}
		out = append(out, w)
	}
	return out
}

func latencyOf(q *result.Quantiles) *v1alpha1.LatencySummary {
	if q == nil {
		return nil
	}
	return &v1alpha1.LatencySummary{
		P50:   duration(q.P50),
		P90:   duration(q.P90),
		P95:   duration(q.P95),
		P99:   duration(q.P99),
		P999:  duration(q.P999),
		P9999: duration(q.P9999),
		Max:   duration(q.Max),
	}
}

// Redis is what was seen of the servers together; nil = nothing was.
func Redis(r *result.Redis) *v1alpha1.RedisFacts {
	if r == nil {
		return nil
	}
	out := &v1alpha1.RedisFacts{
		MaxCPU:              r.MaxCPU,
		MaxMemory:           r.MaxMemory,
		EvictedKeys:         r.EvictedKeys,
		RejectedConnections: r.RejectedConnections,
		Restarts:            int32(r.Restarts),
	}
	if r.MaxMainThreadCPU > 0 {
		out.MaxMainThreadCPU = &r.MaxMainThreadCPU
	}
	return out
}

// MaxServers is the number of servers that a status can list.
const MaxServers = 64

// Servers are the first ones, as the status has them.
func Servers(servers []result.ServerUse) []v1alpha1.ServerUse {
	var out []v1alpha1.ServerUse
	for _, s := range servers[:min(len(servers), MaxServers)] {
		one := v1alpha1.ServerUse{
			Address: s.Address,
			Role: map[string]v1alpha1.ServerRole{
				"primary": v1alpha1.ServerPrimary,
				"replica": v1alpha1.ServerReplica,
			}[s.Role],
			CPU:              new(CPU(s.CPU)),
			Memory:           &v1alpha1.MemoryUse{Max: s.Memory},
			RSS:              &v1alpha1.MemoryUse{Max: s.RSS},
			BytesIn:          v1alpha1.DecimalOf(s.BytesIn),
			BytesOut:         v1alpha1.DecimalOf(s.BytesOut),
			IOThreadedReads:  decimal(s.IOThreadedReads),
			IOThreadedWrites: decimal(s.IOThreadedWrites),
			SlowCommands:     s.SlowCommands,
			Restarts:         int32(s.Restarts),
		}
		if s.Shard != nil {
			one.Shard = new(int32(*s.Shard))
		}
		if s.MainThreadCPU != nil {
			one.MainThreadCPU = new(CPU(*s.MainThreadCPU))
		}
		for _, c := range s.Slowest {
			one.Slowest = append(one.Slowest, v1alpha1.SlowCommand{
				Command: c.Command,
				Took:    duration(c.Took),
				Count:   c.Count,
			})
		}
		out = append(out, one)
	}
	return out
}

// RoundTrip is that to Redis; nil = it was not measured.
func RoundTrip(r *result.RoundTrip) *v1alpha1.RoundTrip {
	if r == nil {
		return nil
	}
	out := &v1alpha1.RoundTrip{ShareOfLatency: decimal(r.ShareOfLatency)}
	for _, one := range []struct {
		to   **v1alpha1.Duration
		from *result.Seconds
	}{{&out.Idle, r.Idle}, {&out.Farthest, r.Farthest}, {&out.UnderLoad, r.UnderLoad}} {
		if one.from != nil {
			*one.to = new(duration(*one.from))
		}
	}
	return out
}

// CPU is the use of CPU.
func CPU(c result.CPU) v1alpha1.CPUUse {
	out := v1alpha1.CPUUse{Mean: c.Mean, Max: c.Max}
	if c.Limit > 0 {
		out.Limit = &c.Limit
	}
	return out
}
