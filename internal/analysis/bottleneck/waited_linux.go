package bottleneck

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// threads sums for how long the threads of a process were ready to run and did not. Threads begin
// and end meanwhile: what one had waited when it was last seen stays in the sum.
type threads struct {
	dir    string                   // the process's, such as /proc/self
	waited map[string]time.Duration // by thread, of those that exist
	ended  time.Duration            // of those that do not any more
	known  bool                     // the kernel counts it
}

func newThreads(dir string) *threads {
	return &threads{dir: dir, waited: map[string]time.Duration{}}
}

// read returns the sum in seconds since the first call; -1 if the kernel does not count it.
func (t *threads) read() float64 {
	names := t.list()
	now := make(map[string]time.Duration, len(names))
	for _, name := range names {
		ran, waited, ok := parseSchedstat(readFile(t.dir, filepath.Join("task", name, "schedstat")))
		if !ok {
			continue // it has just ended, or the kernel has no such file
		}
		t.known = t.known || ran > 0
		now[name] = waited
	}
	for name, before := range t.waited {
		// it ended; the number may be another thread's by now
		if after, ok := now[name]; !ok || after < before {
			t.ended += before
		}
	}
	t.waited = now
	if !t.known {
		return -1
	}
	sum := t.ended
	for _, waited := range now {
		sum += waited
	}
	return sum.Seconds()
}

// list returns the numbers of the threads.
func (t *threads) list() []string {
	dir, err := os.Open(filepath.Join(t.dir, "task"))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	return names
}

// parseSchedstat reads /proc/PID/task/TID/schedstat: the time that the thread ran and the time that
// it was ready to and did not, in nanoseconds, and how often it was given a CPU. A kernel that does
// not count them writes zeros, or has no such file.
func parseSchedstat(text string) (ran, waited time.Duration, ok bool) {
	words := strings.Fields(text)
	if len(words) < 2 {
		return 0, 0, false
	}
	r, errRan := strconv.ParseInt(words[0], 10, 64)
	w, errWaited := strconv.ParseInt(words[1], 10, 64)
	return time.Duration(r), time.Duration(w), errRan == nil && errWaited == nil
}

// stealing sums what the hypervisor took from a process: of what it took from the machine, as large
// a part as that of the process in what the machine's CPUs ran. The machine's counts have a
// resolution of 10 ms, so that a part is computed over several readings.
type stealing struct {
	readings int
	// seconds: of the process, of all CPUs, of the hypervisor; and the result
	used, ran, stolen, sum float64
}

// stealEvery is the number of readings for which a part is computed: a second of the usual 100 ms.
const stealEvery = 10

// add returns the sum in seconds, given the process's CPU time. It reads the text of /proc/stat
// only if a further part is due: on a machine with many CPUs and interrupts that is expensive.
func (s *stealing) add(used float64, stat func() string) float64 {
	n := s.readings
	s.readings++
	if n%stealEvery != 0 {
		return s.sum
	}
	ran, stolen, ok := parseStat(stat())
	if !ok {
		return s.sum
	}
	if all := ran - s.ran; n > 0 && all > 0 {
		s.sum += max(0, stolen-s.stolen) * min(1, max(0, used-s.used)/all)
	}
	s.used, s.ran, s.stolen = used, ran, stolen
	return s.sum
}

// parseStat reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq and
// steal, in ticks of 10 ms over all CPUs.
func parseStat(text string) (ran, stolen float64, ok bool) {
	const steal, perSecond = 8, 100
	line, _, _ := strings.Cut(text, "\n")
	words := strings.Fields(line)
	if len(words) <= steal || words[0] != "cpu" {
		return 0, 0, false
	}
	for i, word := range words[:steal+1] {
		n, err := strconv.ParseFloat(word, 64)
		switch {
		case i == 0 || i == 4 || i == 5: // the name, idle, iowait
		case err != nil:
			return 0, 0, false
		case i == steal:
			stolen = n / perSecond
		default:
			ran += n / perSecond
		}
	}
	return ran, stolen, true
}
