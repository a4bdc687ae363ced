package v1alpha1

import (
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults of optional fields that exclude others: as defaults in the CRD they would prevent
// setting the others.
const (
	// DefaultValueBytes is the size of {value} if values sets neither bytes nor minBytes and maxBytes.
	DefaultValueBytes = 32

	// DefaultConnections is the number of connections per load pod, unless the workload is http or
	// cacheAside: then there are as many as users need, at most MaxConnections.
	DefaultConnections = 50
	MaxConnections     = 10_000

	// DefaultLibraryRequests is how many requests a load pod has in flight at a time with the driver of
	// a library, unless users need fewer.
	DefaultLibraryRequests = 1000

	// DefaultRequestTimeout is how long a reply of Redis may take, and DefaultRemoteTimeout one of the
	// API or database of http and cacheAside.
	DefaultRequestTimeout = time.Second
	DefaultRemoteTimeout  = 30 * time.Second

	// DefaultSteadyFor is how long the throughput must have been steady if a trigger sets neither
	// steadyFor nor after.
	DefaultSteadyFor = 10 * time.Second

	// DefaultFaultDuration is how long a fault that lasts stays if duration is not set.
	DefaultFaultDuration = 30 * time.Second

	// DefaultSettingDuration is how long a setting stays at most if duration is not set.
	DefaultSettingDuration = 24 * time.Hour

	// DefaultDrainTimeout is how long a Drain tries an eviction that is refused if it has no
	// action.drain.timeout.
	DefaultDrainTimeout = 5 * time.Minute
	// DefaultMarkWait is how long a fault of type External waits if it has no action.external.
	DefaultMarkWait = 30 * time.Minute
)

// Share is 25% as 0.25. The patterns of the CRD let nothing else pass; absent text is 0.
func (p Percentage) Share() float64 {
	n, _ := strconv.ParseFloat(strings.TrimSuffix(string(p), "%"), 64)
	return n / 100
}

// PerSecond is a rate of the load, or of one of its stages, in requests per second.
func (s *LoadShape) PerSecond(rate int32) float64 {
	switch s.RatePer {
	case PerMinute:
		return float64(rate) / 60
	case PerHour:
		return float64(rate) / 3600
	}
	return float64(rate)
}

// defaultDeadline is the default of spec.deadline of a fault that waits for nothing and does not
// last.
const defaultDeadline = 24 * time.Hour

// MarkWait is how long a fault of type External waits for its instant; 0 for other types.
func (s *RedisFaultSpec) MarkWait() time.Duration {
	switch external := s.Action.External; {
	case s.Action.Type != FaultExternal:
		return 0
	case external == nil || external.WaitFor.Duration == 0:
		return DefaultMarkWait
	default:
		return external.WaitFor.Duration
	}
}

// KeepsDown reports whether the fault kills pods, and their replacements until its end.
func (s *RedisFaultSpec) KeepsDown() bool {
	return s.Action.Type == FaultPodKill && s.Duration != nil
}

// Stays is how long a fault that lasts stays, and a setting at most.
func (s *RedisFaultSpec) Stays() time.Duration {
	switch {
	case s.Duration != nil:
		return s.Duration.Duration
	case s.Setting:
		return DefaultSettingDuration
	}
	return DefaultFaultDuration
}

// DeadlineAfter is the age at which the fault ends: spec.deadline, or 24h in addition to
// trigger.after, trigger.steadyFor, duration and MarkWait.
func (s *RedisFaultSpec) DeadlineAfter() time.Duration {
	if s.Deadline != nil {
		return s.Deadline.Duration
	}
	deadline := defaultDeadline + s.MarkWait()
	if s.Setting && s.Duration == nil { // it may stay as long as that
		deadline += DefaultSettingDuration
	}
	for _, part := range []*metav1.Duration{s.Trigger.After, s.Trigger.SteadyFor, s.Duration} {
		if part != nil {
			deadline += part.Duration
		}
	}
	return deadline
}

// Resizes reports whether an action changes the number of servers: by one of them, which it is
// about.
func (a *Action) Resizes() bool {
	return a.Type == FaultReplicaScale
}

// Removes reports whether an action removes servers.
func (a *Action) Removes() bool {
	return a.ReplicaScale != nil && a.ReplicaScale.By < 0
}

// SwitchesPower reports whether an action switches off machines.
func (a *Action) SwitchesPower() bool {
	return a.NodeLoss != nil && a.NodeLoss.Method == LossPower
}

// Changes are what an action changes of a server that another one may change as well: the settings
// of Redis, by one name for each, else its type. Two actions on one server must have none in common.
func (a *Action) Changes() []string {
	if a.Config != nil {
		var names []string
		for name := range a.Config.Parameters {
			names = append(names, canonical(name))
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	changes := []string{string(a.Type)}
	if a.pausesClients() {
		changes = append(changes, "the pause of clients")
	}
	return changes
}

// pausesClients reports whether an action pauses clients by CLIENT PAUSE, or may: a server has one
// pause, which the later and the stricter of two calls extends, and one UNPAUSE ends.
func (a *Action) pausesClients() bool {
	switch a.Type {
	case FaultClientPause:
		return true
	case FaultHang:
		return a.Hang == nil || a.Hang.Method == "" || a.Hang.Method == HangAuto ||
			a.Hang.Method == HangClientPause
	case FaultFailover:
		return a.Failover != nil && a.Failover.Mode == FailoverCoordinated
	}
	return false
}

// canonical is the present name of a setting of Redis or Valkey that has several (createXConfig in
// their config.c).
func canonical(name string) string {
	name = strings.ToLower(name)
	if other := formerNames[name]; other != "" {
		return other
	}
	return strings.NewReplacer("slave", "replica", "ziplist", "listpack", "primary", "master").Replace(name)
}

var formerNames = map[string]string{
	"lua-time-limit":                    "busy-reply-threshold",
	"commandlog-execution-slower-than":  "slowlog-log-slower-than",
	"commandlog-slow-execution-max-len": "slowlog-max-len",
}
