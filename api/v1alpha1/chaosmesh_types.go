package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DiskMethod is a call of the file system.
// +kubebuilder:validation:Enum=Read;Write;Flush;Fsync
type DiskMethod string

// The calls.
const (
	// DiskRead is calls that read.
	DiskRead DiskMethod = "Read"
	// DiskWrite is calls that write.
	DiskWrite DiskMethod = "Write"
	// DiskFlush is calls that flush a file when it is closed.
	DiskFlush DiskMethod = "Flush"
	// DiskFsync is fsync.
	DiskFsync DiskMethod = "Fsync"
)

// DiskDelay delays the file system calls to a volume, by Chaos Mesh.
type DiskDelay struct {
	// delay of each call. Between 1ms and 1m.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('1m')",message="must be between 1ms and 1m"
	// +kubebuilder:validation:Type=string
	Delay metav1.Duration `json:"delay,omitzero"`

	// volumePath is the mount path of the volume in the Redis container. Defaults to the mount that
	// contains the server's dir.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/`
	VolumePath string `json:"volumePath,omitempty"`

	// path is a pattern of the affected files, such as /data/appendonlydir/*. Defaults to the whole
	// volume.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/`
	Path string `json:"path,omitempty"`

	// methods are the calls that are delayed.
	// Read: calls that read.
	// Write: calls that write.
	// Flush: calls that flush a file when it is closed.
	// Fsync: fsync.
	// +optional
	// +listType=set
	// +kubebuilder:default={Write,Fsync}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Methods []DiskMethod `json:"methods,omitempty"`

	// percent of the calls that are delayed.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent,omitempty"`
}

// CPUStress consumes CPU in the Redis container, by Chaos Mesh.
type CPUStress struct {
	// workers is the number of processes that consume CPU.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Workers int32 `json:"workers,omitempty"`

	// load of each worker, in percent of a core.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Load int32 `json:"load,omitempty"`
}

// ClockSkew shifts the server's wall clock, by Chaos Mesh. The clocks of other processes are not
// affected.
type ClockSkew struct {
	// offset of the clock; negative sets it back. Between -8760h and 8760h, and at least 1s to either
	// side.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^-?([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('-8760h') && duration(self) <= duration('8760h') && (duration(self) >= duration('1s') || duration(self) <= duration('-1s'))",message="must be between -8760h and 8760h, and at least 1s to either side"
	// +kubebuilder:validation:Type=string
	Offset metav1.Duration `json:"offset,omitzero"`
}
