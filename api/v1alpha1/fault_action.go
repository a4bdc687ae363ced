package v1alpha1

// Action is what a fault does: its type, and the settings of that type.
// +kubebuilder:validation:XValidation:rule="!has(self.podKill) || self.type == 'PodKill'",message="podKill belongs to type PodKill: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="!has(self.processCrash) || self.type == 'ProcessCrash'",message="processCrash belongs to type ProcessCrash: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="!has(self.failover) || self.type == 'Failover'",message="failover belongs to type Failover: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeAttachDelay) || self.type == 'VolumeAttachDelay'",message="volumeAttachDelay belongs to type VolumeAttachDelay: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="(self.type == 'IOThreads') == has(self.ioThreads)",message="ioThreads is required with type IOThreads, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Config') == has(self.config)",message="config is required with type Config, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="(self.type == 'ReplicaScale') == has(self.replicaScale)",message="replicaScale is required with type ReplicaScale, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Resources') == has(self.resources)",message="resources is required with type Resources, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="(self.type == 'PodTemplate') == has(self.podTemplate)",message="podTemplate is required with type PodTemplate, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="!has(self.hang) || self.type == 'Hang'",message="hang belongs to type Hang: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="!has(self.clientPause) || self.type == 'ClientPause'",message="clientPause belongs to type ClientPause: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="!has(self.clientKill) || self.type == 'ClientKill'",message="clientKill belongs to type ClientKill: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="!has(self.backgroundSave) || self.type == 'BackgroundSave'",message="backgroundSave belongs to type BackgroundSave: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="(self.type == 'NodeLoss') == has(self.nodeLoss)",message="nodeLoss is required with type NodeLoss, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="(self.type == 'NetworkDelay') == has(self.networkDelay)",message="networkDelay is required with type NetworkDelay, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="(self.type == 'NetworkLoss') == has(self.networkLoss)",message="networkLoss is required with type NetworkLoss, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="(self.type == 'NetworkPartition') == has(self.networkPartition)",message="networkPartition is required with type NetworkPartition, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="(self.type == 'DiskDelay') == has(self.diskDelay)",message="diskDelay is required with type DiskDelay, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="!has(self.cpuStress) || self.type == 'CPUStress'",message="cpuStress belongs to type CPUStress: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="(self.type == 'ClockSkew') == has(self.clockSkew)",message="clockSkew is required with type ClockSkew, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="!has(self.external) || self.type == 'External'",message="external belongs to type External: set the member that type names, or none"
type Action struct {
	// type of the fault; the field of the same name contains its settings.
	// PodKill: deletes the pod; its controller replaces it.
	// ProcessCrash: ends the server process; the kubelet restarts its container in the same pod.
	// Failover: promotes a replica in place of the primary.
	// VolumeAttachDelay: deletes the pod and keeps its volume attached to the old node, so that the replacement waits for it.
	// IOThreads: changes the number of I/O threads.
	// Config: changes settings by CONFIG SET.
	// ReplicaScale: adds or removes replicas.
	// Resources: changes the container's CPU and memory in place.
	// PodTemplate: changes the pod template of the StatefulSet, and replaces its pods one by one.
	// Hang: keeps the server from replying to any request.
	// ClientPause: suspends clients by CLIENT PAUSE.
	// ClientKill: closes the connections of clients, once.
	// BackgroundSave: makes the server fork, to save or to rewrite its append-only file.
	// NodeLoss: taints a node and force-deletes the Redis pods on it.
	// External: breaks nothing; marks the instant at which somebody or something else broke Redis, and measures it.
	// With engine ChaosMesh: PodKill, and
	// NetworkDelay: delays packets of the server.
	// NetworkLoss: drops some of its packets.
	// NetworkPartition: drops all packets between it and its peers.
	// DiskDelay: delays calls to its volume.
	// CPUStress: consumes CPU in its container.
	// ClockSkew: shifts its wall clock.
	// +required
	Type FaultType `json:"type,omitempty"`

	// podKill deletes the pod.
	// +optional
	PodKill *PodKill `json:"podKill,omitempty"`

	// processCrash ends the server process; its container is restarted in place.
	// +optional
	ProcessCrash *ProcessCrash `json:"processCrash,omitempty"`

	// failover moves the primary to a replica.
	// +optional
	Failover *Failover `json:"failover,omitempty"`

	// volumeAttachDelay kills the pod and keeps its volume attached to the old node, so that the replacement on another node has to wait for it.
	// +optional
	VolumeAttachDelay *VolumeAttachDelay `json:"volumeAttachDelay,omitempty"`

	// ioThreads changes the number of I/O threads.
	// +optional
	IOThreads *IOThreads `json:"ioThreads,omitempty"`

	// config changes settings of the server, live.
	// +optional
	Config *Config `json:"config,omitempty"`

	// replicaScale adds or removes replicas.
	// +optional
	ReplicaScale *ReplicaScale `json:"replicaScale,omitempty"`

	// resources changes the container's CPU and memory in place.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// podTemplate changes the pod template of the StatefulSet, and replaces its pods one by one.
	// +optional
	PodTemplate *PodTemplate `json:"podTemplate,omitempty"`

	// hang keeps the server from replying.
	// +optional
	Hang *Hang `json:"hang,omitempty"`

	// clientPause suspends clients by CLIENT PAUSE.
	// +optional
	ClientPause *ClientPause `json:"clientPause,omitempty"`

	// clientKill closes the connections of clients.
	// +optional
	ClientKill *ClientKill `json:"clientKill,omitempty"`

	// backgroundSave makes the server fork, to save or to rewrite its append-only file.
	// +optional
	BackgroundSave *BackgroundSave `json:"backgroundSave,omitempty"`

	// nodeLoss simulates the loss of a node: it is tainted and the Redis pods on it are force-deleted.
	// +optional
	NodeLoss *NodeLoss `json:"nodeLoss,omitempty"`

	// networkDelay delays packets of the server; engine ChaosMesh.
	// +optional
	NetworkDelay *NetworkDelay `json:"networkDelay,omitempty"`

	// networkLoss drops some of its packets; engine ChaosMesh.
	// +optional
	NetworkLoss *NetworkLoss `json:"networkLoss,omitempty"`

	// networkPartition isolates it from its peers; engine ChaosMesh.
	// +optional
	NetworkPartition *NetworkPartition `json:"networkPartition,omitempty"`

	// diskDelay delays calls to its volume; engine ChaosMesh.
	// +optional
	DiskDelay *DiskDelay `json:"diskDelay,omitempty"`

	// cpuStress consumes CPU in its container; engine ChaosMesh.
	// +optional
	CPUStress *CPUStress `json:"cpuStress,omitempty"`

	// clockSkew shifts its wall clock; engine ChaosMesh.
	// +optional
	ClockSkew *ClockSkew `json:"clockSkew,omitempty"`

	// external is how the instant is found at which somebody or something else breaks Redis.
	// +optional
	External *External `json:"external,omitempty"`
}
