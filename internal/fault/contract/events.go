package contract

// What servers and sentinels show of a recovery, as events of the timeline.
const (
	EventSubjectivelyDown = "SubjectivelyDown" // a sentinel (+sdown) or a node of the cluster (PFAIL) misses a primary
	EventObjectivelyDown  = "ObjectivelyDown"  // enough of them do (+odown, FAIL)
	EventElected          = "Elected"          // a sentinel was elected to lead the failover
	EventPromoted         = "Promoted"         // a server is primary that was none
	EventSwitched         = "Switched"         // the sentinels tell clients of another primary (+switch-master)
	EventDatasetLoaded    = "DatasetLoaded"    // a new server process answers and has its data
	EventClusterDown      = "ClusterDown"      // the nodes refuse commands: cluster_state fail
	EventSlotsCovered     = "SlotsCovered"     // all slots are served again
	EventReplicasResynced = "ReplicasResynced" // as many replicas as before follow a primary, in sync
)

// What the way of a volume to another node shows.
const (
	EventMultiAttach = "MultiAttachError" // the attach-detach controller refused it
	EventAttached    = "VolumeAttached"   // it attached it to the replacement's node
)
