package v1alpha1

// CPUUse is a usage of CPU over the measured time, in millicores.
type CPUUse struct {
	// mean over the measured time, in millicores.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Mean int64 `json:"mean"`
	// max is the highest over 5 s, in millicores; of observed pods, over one reading of the metrics
	// API.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Max int64 `json:"max"`
	// limit of a pod, or of the container of a server, in millicores; the lowest if they differ. Not
	// set if there is none, and for a server until the load has ended.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Limit *int64 `json:"limit,omitempty"`
}

// MemoryUse is a usage of memory over the measured time.
type MemoryUse struct {
	// max is the highest, in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Max int64 `json:"max"`
}

// ServerRole is the role of a Redis server at its last reading.
//   - Primary: it takes writes.
//   - Replica: it copies a primary.
//
// +kubebuilder:validation:Enum=Primary;Replica
type ServerRole string

// The roles of a server.
const (
	ServerPrimary ServerRole = "Primary"
	ServerReplica ServerRole = "Replica"
)

// ServerUse is what one Redis server used over the measured time, from INFO and the slow log. It is
// computed from readings of the same process, so that a restart does not distort it.
type ServerUse struct {
	// address is host:port of the server.
	// +required
	// +kubebuilder:validation:MaxLength=300
	Address string `json:"address,omitempty"`
	// pod in the object's namespace that has the address, or the only one of the target; not set if it
	// is unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Pod string `json:"pod,omitempty"`
	// role at the last reading.
	// Primary: it takes writes.
	// Replica: it copies a primary.
	// +optional
	Role ServerRole `json:"role,omitempty"`
	// shard is the number of its shard in a cluster, from 0, as in summary.shards.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Shard *int32 `json:"shard,omitempty"`
	// cpu of the server's process.
	// +optional
	CPU *CPUUse `json:"cpu,omitempty"`
	// mainThreadCPU is the part of the main thread, which runs the commands. Not set if the server
	// does not report it.
	// +optional
	MainThreadCPU *CPUUse `json:"mainThreadCPU,omitempty"`
	// memory is used_memory, without fragmentation and copies on write.
	// +optional
	Memory *MemoryUse `json:"memory,omitempty"`
	// rss is used_memory_rss: the memory of the process as the container's limit counts it, about.
	// +optional
	RSS *MemoryUse `json:"rss,omitempty"`
	// bytesIn is the mean of bytes per second from clients, replicas and primaries.
	// +optional
	BytesIn Decimal `json:"bytesIn,omitempty"`
	// bytesOut is the mean of bytes per second to clients, replicas and primaries.
	// +optional
	BytesOut Decimal `json:"bytesOut,omitempty"`
	// ioThreadedReads is the share of reads from connections that I/O threads performed, from 0 to 1.
	// Not set if the server does not report it.
	// +optional
	IOThreadedReads Decimal `json:"ioThreadedReads,omitempty"`
	// ioThreadedWrites is the share of writes to connections that I/O threads performed, from 0 to 1.
	// Not set if the server does not report it.
	// +optional
	IOThreadedWrites Decimal `json:"ioThreadedWrites,omitempty"`
	// slowCommands is the number of commands in the slow log. Not set if the user may not run SLOWLOG
	// GET.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SlowCommands *int64 `json:"slowCommands,omitempty"`
	// slowest are the longest executions in the slow log, one of each command, the longest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Slowest []SlowCommand `json:"slowest,omitempty"`
	// restarts is how often another process replied at the address.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Restarts int32 `json:"restarts"`
}

// SlowCommand is the longest execution of a command, and how many there were.
type SlowCommand struct {
	// command is its first word.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Command string `json:"command,omitempty"`
	// took is how long it ran, without waiting and without the network.
	// +optional
	Took Duration `json:"took"`
	// count is the number of its executions that were read from the slow log: at most the newest 128
	// commands of each second.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Count int64 `json:"count,omitempty"`
}

// RoundTrip is how long a PING takes between the load pods and Redis, on connections that the load
// does not use: the part of the network in latency.
type RoundTrip struct {
	// idle is the shortest before the load.
	// +optional
	Idle *Duration `json:"idle,omitempty"`
	// farthest is idle of the load pod for which it is longest. Not set with one load
	// pod.
	// +optional
	Farthest *Duration `json:"farthest,omitempty"`
	// underLoad is the median over the measured time of the shortest of each second.
	// It includes waiting for a busy Redis.
	// +optional
	UnderLoad *Duration `json:"underLoad,omitempty"`
	// shareOfLatency is the network's part of the median latency, from 0 to 1: the shorter one of idle
	// and underLoad. Not set for the workloads http and cacheAside, whose requests go to other
	// servers, too, and if that PING is longer than the median latency: it then waited for the CPU of
	// its node.
	// +optional
	ShareOfLatency Decimal `json:"shareOfLatency,omitempty"`
}

// PodsUse is what the pods of one entry of spec.observe.pods used over the measured time, from the
// metrics API.
type PodsUse struct {
	// name of the entry.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// count is the number of pods that readings are about.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"`
	// cpu of one pod: of its containers together.
	// +optional
	CPU *CPUUse `json:"cpu,omitempty"`
	// memory of one pod: its working set.
	// +optional
	Memory *MemoryUse `json:"memory,omitempty"`
	// message is why there are no readings in the measured time, or no new ones: the figures are then
	// those of the readings until then.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}
