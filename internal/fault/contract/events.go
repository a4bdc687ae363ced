package contract

// Events of the timeline that servers and sentinels show during a recovery.
const (
	// a sentinel (+sdown) or a node of the cluster (PFAIL) misses a primary
	EventSubjectivelyDown = "SubjectivelyDown"
	EventObjectivelyDown  = "ObjectivelyDown" // enough of them do (+odown, FAIL)
	EventElected          = "Elected"         // a sentinel was elected to lead the failover
	EventPromoted         = "Promoted"        // a server is the primary that was not before
	// the sentinels direct clients to another primary (+switch-master)
	EventSwitched = "Switched"
	// a new server process answers, and refuses commands until it has its data (LOADING)
	EventLoading          = "Loading"
	EventDatasetLoaded    = "DatasetLoaded"    // a new server process answers and has its data
	EventClusterDown      = "ClusterDown"      // the nodes refuse commands: cluster_state fail
	EventSlotsCovered     = "SlotsCovered"     // all slots are served again
	EventReplicasResynced = "ReplicasResynced" // as many replicas as before follow a primary, in sync
)

// Events of a volume that moves to another node.
const (
	EventMultiAttach = "MultiAttachError" // the attach-detach controller refused it
	EventAttached    = "VolumeAttached"   // it attached it to the replacement's node
)
