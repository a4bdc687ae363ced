package digest

import (
	"math"
	"time"

	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/result"
)

// LoadOf is the result of a load of a shape by the status of its test.
func LoadOf(status *v1alpha1.RedisLoadTestStatus, shape plan.Shape) *result.Load {
	l := &result.Load{
		Asked: result.Asked{
			Shape: shape.InWords(),
			Seed:  uint64(ptr.Deref(status.Seed, 0)),
		},
		Latency: result.ServiceTime,
		Total:   result.Operation{Name: "all"},
	}
	if shape.OpenLoop() {
		l.Latency = result.ResponseTime
	}
	if sum := status.Summary; sum != nil {
		l.Total = result.Operation{
			Name:       "all",
			Requests:   uint64(sum.Requests),
			OK:         uint64(sum.Requests - sum.Errors),
			Drained:    uint64(sum.Drained),
			Failed:     uint64(sum.Failed),
			Unknown:    uint64(sum.Unknown),
			Dropped:    uint64(sum.Dropped),
			Redirected: uint64(sum.Redirected),
			Throughput: numberOr0(sum.Throughput),
			ErrorRate:  numberOr0(sum.ErrorRate),
			Latency:    quantilesOf(sum.Latency),
		}
		l.MaxLag = secondsOf(ptr.Deref(sum.MaxLag, v1alpha1.Duration{}))
		for _, e := range sum.ErrorsByClass {
			l.Errors = append(l.Errors, result.ErrorCount{Class: e.Class, Count: uint64(e.Count)})
		}
		for _, o := range sum.Operations {
			l.Operations = append(l.Operations, operationOf(&o))
		}
		for _, s := range sum.Shards {
			l.Shards = append(l.Shards, shardOf(&s))
		}
		if o := sum.Outage; o != nil {
			setOutage(l, o)
		}
		for _, f := range sum.Workload {
			l.Workload = append(l.Workload, workloadFigure(&f))
		}
	}
	if start := status.StartTime; start != nil {
		l.Guarantees = GuaranteesOf(status.Guarantees, start.Time)
		l.Verification = VerificationOf(status.Verification, start.Time)
		for _, a := range status.Anomalies {
			if a.At != nil {
				l.Anomalies = append(l.Anomalies, result.Anomaly{
					At:     result.Seconds(a.At.Sub(start.Time)),
					Length: secondsOf(a.Length),
					Dip:    numberOr0(a.Dip),
				})
			}
		}
	}
	if b := status.Bottleneck; b != nil {
		l.Bottleneck = &result.Bottleneck{Component: string(b.Component), Evidence: b.Evidence}
	}
	for i := range status.Objectives {
		l.Objectives = append(l.Objectives, Objective(&status.Objectives[i]))
	}
	l.Warnings = status.Warnings
	around(l, status)
	l.Search = searchOf(status.Search)
	return l
}

// setOutage sets the gap that was the outage of a load.
func setOutage(l *result.Load, o *v1alpha1.Outage) {
	g := gapOf(&o.BoundedDuration)
	switch o.Of {
	case v1alpha1.OutageOfShard:
		l.LongestShardGap = &result.ShardGap{Gap: *g, Shard: int(ptr.Deref(o.Shard, 0))}
	case v1alpha1.OutageOfProbe:
		l.ProbeGap = g
	case v1alpha1.OutageOfReads, v1alpha1.OutageOfWrites:
		g.Of = string(o.Of)
		l.LongestGap = g
	default:
		l.LongestGap = g
	}
}

func operationOf(o *v1alpha1.OperationSummary) result.Operation {
	out := result.Operation{
		Name:       o.Name,
		Requests:   uint64(o.Requests),
		OK:         uint64(o.Requests - o.Errors),
		Failed:     uint64(o.Errors),
		Misses:     uint64(o.Misses),
		Throughput: numberOr0(o.Throughput),
		Latency:    quantilesOf(o.Latency),
	}
	if o.Requests > 0 {
		out.ErrorRate = float64(o.Errors) / float64(o.Requests)
	}
	return out
}

func shardOf(s *v1alpha1.ShardSummary) result.Shard {
	out := result.Shard{
		Shard:      int(s.Shard),
		Errors:     uint64(s.Errors),
		Throughput: numberOr0(s.Throughput),
	}
	if s.LongestGap != nil {
		out.LongestGap = secondsOf(*s.LongestGap)
		out.AtLeast, out.AtMost = out.LongestGap, out.LongestGap
	}
	return out
}

func workloadFigure(f *v1alpha1.WorkloadFigure) result.Figure {
	out := result.Figure{Name: f.Name}
	switch f.Unit {
	case v1alpha1.UnitShare:
		out.Share = new(numberOr0(f.Value))
	case v1alpha1.UnitSeconds:
		out.Seconds = new(result.Seconds(math.Round(numberOr0(f.Value) * float64(time.Second))))
	default:
		out.Count = new(uint64(numberOr0(f.Value)))
	}
	return out
}

// around sets what was used around the load.
func around(l *result.Load, status *v1alpha1.RedisLoadTestStatus) {
	if t := status.Target; t != nil {
		l.Target = result.Target{
			Topology:    string(t.Topology),
			Addresses:   t.Addresses,
			Sentinels:   t.Sentinels,
			Server:      t.Server,
			Version:     t.Version,
			NotObserved: t.Message,
		}
	}
	if r := status.Redis; r != nil {
		l.Redis = &result.Redis{
			MaxCPU:              r.MaxCPU,
			MaxMemory:           r.MaxMemory,
			EvictedKeys:         r.EvictedKeys,
			RejectedConnections: r.RejectedConnections,
			Restarts:            int(r.Restarts),
			MaxMainThreadCPU:    ptr.Deref(r.MaxMainThreadCPU, 0),
		}
	}
	for i := range status.Servers {
		l.Servers = append(l.Servers, serverOf(&status.Servers[i]))
	}
	if p := status.LoadPods; p != nil && p.CPU != nil {
		l.LoadPodCPU = new(cpuOf(p.CPU))
	}
	for _, p := range status.Pods {
		use := result.PodsUse{Name: p.Name, Count: int(p.Count)}
		if p.CPU != nil {
			use.CPU = cpuOf(p.CPU)
		}
		if p.Memory != nil {
			use.Memory = p.Memory.Max
		}
		l.Pods = append(l.Pods, use)
	}
	if t := status.RoundTrip; t != nil {
		l.RoundTrip = &result.RoundTrip{
			Idle:           secondsIf(t.Idle),
			Farthest:       secondsIf(t.Farthest),
			UnderLoad:      secondsIf(t.UnderLoad),
			ShareOfLatency: Number(t.ShareOfLatency),
		}
	}
}

func serverOf(u *v1alpha1.ServerUse) result.ServerUse {
	out := result.ServerUse{
		Address:          u.Address,
		Pod:              u.Pod,
		Role:             string(u.Role),
		BytesIn:          numberOr0(u.BytesIn),
		BytesOut:         numberOr0(u.BytesOut),
		SlowCommands:     u.SlowCommands,
		Restarts:         int(u.Restarts),
		IOThreadedReads:  Number(u.IOThreadedReads),
		IOThreadedWrites: Number(u.IOThreadedWrites),
	}
	if u.Shard != nil {
		out.Shard = new(int(*u.Shard))
	}
	if u.CPU != nil {
		out.CPU = cpuOf(u.CPU)
	}
	if u.MainThreadCPU != nil {
		out.MainThreadCPU = new(cpuOf(u.MainThreadCPU))
	}
	if u.Memory != nil {
		out.Memory = u.Memory.Max
	}
	if u.RSS != nil {
		out.RSS = u.RSS.Max
	}
	for _, c := range u.Slowest {
		out.Slowest = append(out.Slowest, result.SlowCommand{
			Command: c.Command,
			Took:    secondsOf(c.Took),
			Count:   c.Count,
		})
	}
	return out
}

func searchOf(s *v1alpha1.SearchStatus) *result.Search {
	if s == nil {
		return nil
	}
	out := &result.Search{
		Rate:    float64(s.Rate),
		Done:    s.Done,
		Message: s.Message,
	}
	for _, t := range s.Trials {
		if t.Met == nil {
			continue // in progress
		}
		trial := result.Trial{
			Rate:       float64(t.Rate),
			Met:        *t.Met,
			Missed:     t.Message,
			Throughput: numberOr0(t.Throughput),
			ErrorRate:  numberOr0(t.ErrorRate),
		}
		if t.LatencyP99 != nil {
			trial.Latency = &result.Quantiles{P99: secondsOf(*t.LatencyP99)}
		}
		out.Trials = append(out.Trials, trial)
	}
	return out
}

func cpuOf(c *v1alpha1.CPUUse) result.CPU {
	return result.CPU{
		Mean:  c.Mean,
		Max:   c.Max,
		Limit: ptr.Deref(c.Limit, 0),
	}
}

func quantilesOf(l *v1alpha1.LatencySummary) *result.Quantiles {
	if l == nil {
		return nil
	}
	return &result.Quantiles{
		P50:   secondsOf(l.P50),
		P90:   secondsOf(l.P90),
		P95:   secondsOf(l.P95),
		P99:   secondsOf(l.P99),
		P999:  secondsOf(l.P999),
		P9999: secondsOf(l.P9999),
		Max:   secondsOf(l.Max),
	}
}

func gapOf(b *v1alpha1.BoundedDuration) *result.Gap {
	return &result.Gap{
		Length:  secondsOf(b.Value),
		AtLeast: secondsOf(b.AtLeast),
		AtMost:  secondsOf(b.AtMost),
	}
}

// numberOr0 is the number of a status; 0 if it is not set.
func numberOr0(d v1alpha1.Decimal) float64 {
	x, _ := d.Number()
	return x
}
