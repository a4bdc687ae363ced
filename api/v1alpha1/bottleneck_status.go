package v1alpha1

// BottleneckComponent is what limited a load: the first component, in this order, that was at its
// limit.
// +kubebuilder:validation:Enum=LoadGenerator;Network;Application;CPULimit;RedisMainThread;Disk;Memory;Clients;Backend;None
type BottleneckComponent string

// Bottleneck is what limited the load.
type Bottleneck struct {
	// component that was at its limit.
	// LoadGenerator: the load pods; the figures are not those of Redis.
	// Network: the path between load and Redis.
	// Application: the CPU of pods of spec.observe.pods, with the workloads http and cacheAside.
	// CPULimit: the CPU limit of Redis' container.
	// RedisMainThread: the one thread that runs commands.
	// Disk: fsync of the append-only file.
	// Memory: maxmemory: evictions, or refused writes.
	// Clients: maxclients, or blocked clients.
	// Backend: the database or the API of the workload.
	// None: nothing reached its limit.
	// +required
	Component BottleneckComponent `json:"component,omitempty"`
	// pods is the name of the entry of spec.observe.pods that was at its limit, with Application.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Pods string `json:"pods,omitempty"`
	// evidence is a sentence with the figures that show it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Evidence string `json:"evidence,omitempty"`
}
