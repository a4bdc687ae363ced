package impact

import (
	"time"

	"github.com/redquake/redquake/internal/record"
)

// GeneratorStarved is the reason of a Doubt: a load generator waited for a CPU for so long that figures which hang on it are uncertain.
const GeneratorStarved = "GeneratorStarved"

// Waiting is for how long load generators were ready to run in a part of a run and did not, as others had the CPU: in the queue of the scheduler, throttled
// by a limit, or taken by the hypervisor. Unlike a stall, it is the sum of any waits, however short.
type Waiting struct {
	Known bool // the kernel counts it, and there are readings

	// Of the pod that lost the largest share:
	Pod    int
	Waited time.Duration // of its threads together
	Ran    time.Duration // CPU time that it used
	Over   time.Duration // the time that the readings cover
	Share  float64       // see share

	Busy    float64 // share of the time that one thread of a pod can have run, at most, on average of the pods; 0 = unknown
	Mean    float64 // of Share, over the pods
	Delayed float64 // share of the requests of an open loop that waits can have delayed, at most
}

// share is the share of the time that a pod lost at most by waiting. If its threads never sleep, it is waited / (waited + ran); the time that they sleep
// for replies is not lost, so that it is at most waited / over, too: what one thread lost if it did all the waiting. A program that others interrupt needs
// more CPU for the same, as its caches are cold.
func (w *Waiting) share() float64 {
	if w.Waited <= 0 {
		return 0
	}
	waited, over := w.Waited.Seconds(), w.Over.Seconds()
	share := min(waited/(waited+w.Ran.Seconds()), waited/over)
	return min(1, share+min(cold, share)*w.Ran.Seconds()/over)
}

// cold is the share of the CPU time of a load generator that it would not have needed without interruptions, at most: measured are 7.4 us for a request of 4
// users alone, 8.2 us beside one busy program on the same core, 10.8 us beside three.
const cold = 1.0 / 3

// WaitingTo returns the waiting in the part of a record that SummarizeWithout sums.
func WaitingTo(s *record.Series, measuredFrom, loadEnd time.Duration, without []Window) Waiting {
	return waitingIn(s, partTo(s, measuredFrom, loadEnd, without))
}

func waitingIn(s *record.Series, p part) Waiting {
	pods := make([]podWaiting, s.Pods)
	for _, a := range s.Agents() {
		if a.Pod < len(pods) {
			pods[a.Pod].add(s, &p, a)
		}
	}
	var worst Waiting
	n, busy, shares, delayed := 0.0, 0.0, 0.0, 0.0
	for pod := range pods {
		w := &pods[pod].Waiting
		if w.Over <= 0 {
			continue
		}
		w.Pod, w.Share = pod, w.share()
		n++
		busy += min(1, w.Ran.Seconds()/w.Over.Seconds())
		shares += w.Share
		delayed += min(1, w.Share/max(leastIdle, 1-pods[pod].busy()))
		if n == 1 || w.Share > worst.Share {
			worst = *w
		}
	}
	if n > 0 {
		worst.Busy, worst.Mean, worst.Delayed = busy/n, shares/n, delayed/n
	}
	return worst
}

// leastIdle is the share of the time that a thread is idle at least, for the time that it takes to send what became due while it waited.
const leastIdle = 0.05

// podWaiting sums the waiting of a pod over its readings.
type podWaiting struct {
	Waiting
	before  record.AgentUse
	threads int
}

// busy is the share of the time that a thread of the pod ran: what is queued behind a wait is sent in the rest.
func (w *podWaiting) busy() float64 {
	return w.Ran.Seconds() / w.Over.Seconds() / float64(max(1, w.threads))
}

// add adds the difference to the reading before: as large a part of it as is within the part.
func (w *podWaiting) add(s *record.Series, p *part, a record.AgentUse) {
	before := w.before
	w.before = a
	switch {
	case before.At == 0 || a.At <= before.At, a.CPUSeconds < before.CPUSeconds: // the first reading; another process
		return
	}
	within := p.overlap(s, time.Duration(before.At), time.Duration(a.At))
	if within <= 0 {
		return
	}
	part := within.Seconds() / time.Duration(a.At-before.At).Seconds()
	since := func(before, now float64) time.Duration {
		return time.Duration(part * max(0, now-before) * float64(time.Second))
	}
	w.Known, w.threads = a.WaitedSeconds >= 0 && before.WaitedSeconds >= 0, a.BusyThreads
	w.Over += within
	w.Ran += since(before.CPUSeconds, a.CPUSeconds)
	w.Waited += since(before.WaitedSeconds, a.WaitedSeconds) + since(before.ThrottledSeconds, a.ThrottledSeconds) + since(before.StolenSeconds, a.StolenSeconds)
}

// overlap is how much of [from, to) is within the part.
func (p *part) overlap(s *record.Series, from, to time.Duration) time.Duration {
	begin := time.Duration(p.first) * s.Step
	from, to = max(from, begin), min(to, begin+p.took)
	length := max(0, to-from)
	for _, w := range p.without {
		length -= max(0, min(to, w.To)-max(from, w.From))
	}
	return max(0, length)
}

// UserTime is what the users of a closed loop did with their time, by Little's law: users = throughput x (latency + think time).
type UserTime struct {
	Missing float64 // share of the time that neither requests nor think time took: the load generator did, by running or by not running
	// Faster is the factor by which the throughput can have been higher, at most, as no request is faster than the fastest tenth of them.
	Faster float64
}

// UserTimeTo returns what the users of a closed loop did in the part of a record that SummarizeWithout sums. users is their number at an instant, think the
// time between a user's requests. Intervals with errors, or without a success, do not count: users may have waited for a connection then. ok is false if
// none is left.
func UserTimeTo(s *record.Series, measuredFrom, loadEnd time.Duration, without []Window, users func(time.Duration) float64, think time.Duration) (t UserTime, ok bool) {
	p := partTo(s, measuredFrom, loadEnd, without)
	span := max(1, int(s.LatencyStep/s.Step))
	var all float64 // user-seconds
	var latencies record.Distribution
	for i := (p.first + span - 1) / span * span; i+span <= p.end; i += span {
		from, to := time.Duration(i)*s.Step, time.Duration(i+span)*s.Step
		if to > time.Duration(p.first)*s.Step+p.took || p.excludes(from, to) {
			continue
		}
		if ok, bad := outcomes(s, i, i+span); ok == 0 || bad > 0 {
			continue
		}
		all += (users(from) + users(to)) / 2 * (to - from).Seconds()
		for k := range s.Ops {
			latencies.Add(s.At(i).Ops[k].Latency)
		}
	}
	n := float64(latencies.Count())
	if all <= 0 || n == 0 {
		return UserTime{}, false
	}
	return UserTime{
		Missing: max(0, 1-n*(latencies.Mean()+think).Seconds()/all),
		Faster:  max(1, all/(n*(latencies.Quantile(fastest)+think).Seconds())),
	}, true
}

// fastest is the share of the requests that are fast: no other one can be expected to take less.
const fastest = 0.1

// outcomes counts the requests of intervals that succeeded, and the others.
func outcomes(s *record.Series, first, end int) (ok, bad uint64) {
	for i := first; i < end; i++ {
		for k := range s.At(i).Ops {
			c := &s.At(i).Ops[k].Counts
			ok += c.OK
			bad += c.Fail + c.Unknown + c.Dropped
		}
	}
	return ok, bad
}
