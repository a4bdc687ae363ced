package bottleneck

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"github.com/redquake/redquake/internal/record"
)

// Self reads the resource usage of this process. It is not safe for concurrent use.
type Self struct {
	groups  cgroups
	gc      debug.GCStats
	threads *threads
	stolen  stealing
}

// NewSelf finds the cgroups of this process.
func NewSelf() *Self {
	return &Self{
		groups:  findCgroups(readFile("/proc/self", "cgroup"), readFile("/proc/self", "mountinfo")),
		threads: newThreads("/proc/self"),
	}
}

// Read returns a reading without the fields that the load sets (At, Pod, BusyThreads, RoundTrip).
// It takes about 140 us of CPU time, 80 us of them for ten threads, and does not stop the world.
func (s *Self) Read() record.AgentUse {
	var a record.AgentUse
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) == nil {
		a.CPUSeconds = seconds(used.Utime) + seconds(used.Stime)
	}
	a.CPULimit, a.ThrottledSeconds = s.groups.read()
	a.WaitedSeconds = s.threads.read()
	a.StolenSeconds = s.stolen.add(a.CPUSeconds, func() string { return readFile("/proc", "stat") })
	debug.ReadGCStats(&s.gc)
	a.GCPauseSeconds = s.gc.PauseTotal.Seconds()
	words := strings.Fields(readFile("/proc/self", "statm"))
	if len(words) > 1 {
		pages, _ := strconv.ParseInt(words[1], 10, 64)
		a.Memory = pages * int64(os.Getpagesize())
	}
	return a
}

func seconds(t syscall.Timeval) float64 {
	return float64(t.Sec) + float64(t.Usec)/1e6
}
