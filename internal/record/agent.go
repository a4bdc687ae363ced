package record

// AgentUse is one reading of the load generator's process. Cumulative values count from the start
// of the process.
type AgentUse struct {
	At               int64   // nanoseconds since T
	Pod              int     // the pod's number
	CPUSeconds       float64 // user and system, cumulative
	CPULimit         float64 // cores, from the cgroup; 0 = no limit
	ThrottledSeconds float64 // time the cgroup throttled the process, cumulative
	// time its threads were ready to run and did not, cumulative over all of them; -1 = the kernel
	// does not count it
	WaitedSeconds float64
	// time the hypervisor took from it, cumulative; 0 also where that is not known
	StolenSeconds  float64
	GCPauseSeconds float64 // stop-the-world pauses, cumulative
	BusyThreads    int     // threads that send load; each can use at most one core; 0 = unknown
	// of a PING on an otherwise idle connection, nanoseconds; 0 = not measured
	RoundTrip int64
	// the shortest of some PINGs before the load, nanoseconds; 0 = not measured
	IdleRoundTrip int64
	Memory        int64 // resident bytes

	// Of a reading of a Series: the stretch with the highest CPU usage, and the one in which the
	// process was throttled most, of those that end with this reading or with one that was merged into
	// it.
	Busiest, MostThrottled Busy
}
