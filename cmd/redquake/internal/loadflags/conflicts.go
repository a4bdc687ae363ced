package loadflags

import (
	"errors"
	"slices"

	"github.com/redquake/redquake/api/v1alpha1"
)

// conflict is a combination of settings that cannot work, or of which one has no effect.
type conflict struct {
	flags   []string // it is told to whoever gave one of them
	applies func(*v1alpha1.RedisLoadTestSpec) bool
	message string
}

// conflicts name the flags of what the object's own rules would refuse by the names of fields.
var conflicts = []conflict{
	{
		[]string{"think-time"},
		opensLoop,
		"--think-time belongs to --users (closed loop): --rate, --search and stages of rates fix the times of the requests",
	},
	{
		[]string{"arrivals", "users"},
		func(s *v1alpha1.RedisLoadTestSpec) bool {
			return s.Load.Arrivals == v1alpha1.ArrivalsPoisson && !fixesTimes(s)
		},
		"--arrivals Poisson belongs to --rate, --search and stages of rates: users send after a reply",
	},
	{
		[]string{"zipf-exponent", "distribution"},
		func(s *v1alpha1.RedisLoadTestSpec) bool {
			k := &s.Workload.Keyspace
			return k.Zipf != nil && k.Distribution != "Zipf"
		},
		"--zipf-exponent needs --distribution Zipf",
	},
	{
		[]string{"gaussian-centre", "gaussian-deviation", "distribution"},
		func(s *v1alpha1.RedisLoadTestSpec) bool {
			k := &s.Workload.Keyspace
			return k.Gaussian != nil && k.Distribution != "Gaussian"
		},
		"--gaussian-centre and --gaussian-deviation need --distribution Gaussian",
	},
	{
		[]string{"requests"},
		func(s *v1alpha1.RedisLoadTestSpec) bool { return s.Load.Search != nil },
		"--requests: a search ends by itself; --rate and --users replace that of the file",
	},
	{
		[]string{"duration", "requests", "ramp-up", "warm-up"},
		func(s *v1alpha1.RedisLoadTestSpec) bool { return len(s.Load.Stages) > 0 },
		"--duration, --requests, --ramp-up and --warm-up: the stages of the file are the whole course " +
			"of the load; --users, --rate and --search replace them",
	},
	{
		[]string{"search"},
		func(s *v1alpha1.RedisLoadTestSpec) bool { return !limitsSearch(s.Objectives) },
		"--search needs one of --max-latency-p50, --max-latency-p99, --max-latency-p999 and " +
			"--max-error-rate: it looks for the highest rate that meets them",
	},
	{
		[]string{"verify-share", "verify-stale-reads", "verify-dual-primary"},
		isUnverified,
		"--verify-share, --verify-stale-reads and --verify-dual-primary go with --verify-writes",
	},
	{
		[]string{"max-lost-writes"},
		isUnverified,
		"--max-lost-writes needs --verify-writes: without it no lost write is found",
	},
	{
		[]string{"driver-option", "adapter"},
		func(s *v1alpha1.RedisLoadTestSpec) bool { return !isLibrary(&s.Client) },
		"--driver-option and --adapter belong to the library of another --driver than Native",
	},
	{
		[]string{"driver", "mode", "retries", "pipeline", "added-latency", "read-from", "connection-max-age"},
		needsNative,
		"--mode Multiplexed, --retries, --pipeline, --added-latency, --read-from and --connection-max-age " +
			"belong to --driver Native; a library has options of its own: --driver-option",
	},
	{[]string{"read-from", "topology"}, func(s *v1alpha1.RedisLoadTestSpec) bool {
		return s.Target.Topology == v1alpha1.TopologyStandalone && s.Client.ReadFrom != "" &&
			s.Client.ReadFrom != v1alpha1.ReadFromPrimary
	}, "--read-from: the topology Standalone has no replicas"},
	{[]string{"topology"}, func(s *v1alpha1.RedisLoadTestSpec) bool {
		return s.Target.Topology == v1alpha1.TopologySentinel && s.Target.Sentinel == nil
	}, "--topology Sentinel needs --sentinel"},
	{[]string{"topology", "sentinel"}, func(s *v1alpha1.RedisLoadTestSpec) bool {
		return s.Target.Sentinel != nil && !isAutoOr(s, v1alpha1.TopologySentinel)
	}, "--sentinel belongs to --topology Sentinel or Auto"},
	{[]string{"database", "topology"}, func(s *v1alpha1.RedisLoadTestSpec) bool {
		return s.Target.Topology == v1alpha1.TopologyCluster && s.Target.Database != 0
	}, "--database: a cluster has only database 0"},
}

// conflict returns an error for the first conflict to which a flag contributes. Those within the
// file alone are left to its validation.
func (f *Flags) conflict(spec *v1alpha1.RedisLoadTestSpec) error {
	for _, c := range conflicts {
		if slices.ContainsFunc(c.flags, f.changed) && c.applies(spec) {
			return errors.New(c.message)
		}
	}
	return nil
}

func opensLoop(s *v1alpha1.RedisLoadTestSpec) bool {
	return s.Load.ThinkTime != nil && s.Load.ThinkTime.Duration > 0 && fixesTimes(s)
}

// fixesTimes reports whether the load is an open loop.
func fixesTimes(s *v1alpha1.RedisLoadTestSpec) bool {
	byRates := slices.ContainsFunc(s.Load.Stages, func(stage v1alpha1.LoadStage) bool {
		return stage.Rate != nil
	})
	return s.Load.Rate != nil || s.Load.Search != nil || byRates
}

func isAutoOr(s *v1alpha1.RedisLoadTestSpec, topology v1alpha1.Topology) bool {
	return s.Target.Topology == "" || s.Target.Topology == v1alpha1.TopologyAuto ||
		s.Target.Topology == topology
}

func limitsSearch(o *v1alpha1.Objectives) bool {
	return o != nil && (o.MaxLatencyP50 != nil || o.MaxLatencyP99 != nil || o.MaxLatencyP999 != nil ||
		o.MaxErrorRate != nil)
}

func isUnverified(s *v1alpha1.RedisLoadTestSpec) bool {
	return s.Verify == nil || !s.Verify.AcknowledgedWrites
}

func needsNative(s *v1alpha1.RedisLoadTestSpec) bool {
	c := &s.Client
	return isLibrary(c) && (c.Mode == v1alpha1.ClientMultiplexed || c.Retries > 0 || c.Pipeline > 1 ||
		c.AddedLatency != nil && c.AddedLatency.Duration > 0 || c.ConnectionMaxAge != nil ||
		c.ReadFrom != "" && c.ReadFrom != v1alpha1.ReadFromPrimary)
}
