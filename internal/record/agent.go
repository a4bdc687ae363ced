package record

// AgentUse is one reading of a load generator's own process. What is called cumulative counts from the process's start.
type AgentUse struct {
	At               int64   // nanoseconds since T
	Pod              int     // the pod's number
	CPUSeconds       float64 // user and system, cumulative
	CPULimit         float64 // cores the cgroup allows; 0 = no limit
	ThrottledSeconds float64 // time the cgroup held the process back, cumulative
	GCPauseSeconds   float64 // stop-the-world pauses, cumulative
	BusyThreads      int     // threads that send load; each can use one core at most. 0 = not known
	RoundTrip        int64   // of a PING on a connection with nothing else in flight, nanoseconds; 0 = none was made
	Memory           int64   // resident bytes
}
