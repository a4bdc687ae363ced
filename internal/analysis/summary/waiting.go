package summary

import (
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// Waiting is for how long load generators were ready to run in a part of a run and did not, as
// others had the CPU: in the queue of the scheduler, throttled by a limit, or taken by the
// hypervisor. Unlike a stall, it is the sum of any waits, however short.
type Waiting struct {
	Known bool // the kernel counts it, and there are readings

	// Of the pod that lost the largest share:
	Pod    int
	Waited time.Duration // of its threads together
	Ran    time.Duration // CPU time that it used
	Over   time.Duration // the time that the readings cover
	Share  float64       // see share

	// share of the time that one thread of a pod can have run, at most, on average of the pods; 0 =
	// unknown
	Busy float64
	Mean float64 // of Share, over the pods
}

// share is the share of the time that a pod lost at most by waiting. If its threads never sleep, it
// is waited / (waited + ran); the time that they sleep for replies is not lost, so that it is at
// most waited / over, too: what one thread lost if it did all the waiting. A program that others
// interrupt needs more CPU for the same, as its caches are cold.
func (w *Waiting) share() float64 {
	if w.Waited <= 0 {
		return 0
	}
	waited, over := w.Waited.Seconds(), w.Over.Seconds()
	share := min(waited/(waited+w.Ran.Seconds()), waited/over)
	return min(1, share+cold*share*share*w.Ran.Seconds()/over)
}

// cold, times the square of the share, is the part of the CPU time of a load generator that it
// would not have needed without interruptions: measured are 7.4 us for a request of 4 users alone,
// 8.2 us (a tenth more) beside one busy program on the same core, 10.8 us (of which a third is too
// much) beside three.
const cold = 0.55

// WaitingTo returns the waiting in the part of a record that SummarizeWithout sums.
func WaitingTo(s *merged.Series, measuredFrom, loadEnd time.Duration, without []Window) Waiting {
	return waitingIn(s, partTo(s, measuredFrom, loadEnd, without))
}

// WaitingWithin is WaitingTo for the part that SummarizeWindow sums.
func WaitingWithin(s *merged.Series, from, to time.Duration) Waiting {
	return waitingIn(s, partWithin(s, from, to))
}

func waitingIn(s *merged.Series, p part) Waiting {
	pods := make([]podWaiting, s.Pods)
	for _, a := range s.Agents() {
		if a.Pod < len(pods) {
			pods[a.Pod].add(s, &p, a)
		}
	}
	var worst Waiting
	n, busy, shares := 0.0, 0.0, 0.0
	for pod := range pods {
		w := &pods[pod].Waiting
		if w.Over <= 0 {
			continue
		}
		w.Pod, w.Share = pod, w.share()
		n++
		busy += min(1, w.Ran.Seconds()/w.Over.Seconds())
		shares += w.Share
		if n == 1 || w.Share > worst.Share {
			worst = *w
		}
	}
	if n > 0 {
		worst.Busy, worst.Mean = busy/n, shares/n
	}
	return worst
}

// podWaiting sums the waiting of a pod over its readings.
type podWaiting struct {
	Waiting
	before record.AgentUse
}

// add adds the difference to the reading before: as large a part of it as is within the part.
func (w *podWaiting) add(s *merged.Series, p *part, a record.AgentUse) {
	before := w.before
	w.before = a
	if !continues(&before, &a) {
		return
	}
	from, to := time.Duration(before.At), time.Duration(a.At)
	within := p.overlap(s, from, to)
	if within <= 0 {
		return
	}
	share := within.Seconds() / (to - from).Seconds()
	w.Known = a.WaitedSeconds >= 0 && before.WaitedSeconds >= 0
	w.Over += within
	w.Ran += inSeconds(share * (a.CPUSeconds - before.CPUSeconds))
	w.Waited += time.Duration(share * float64(waitedBetween(&before, &a)))
}

// continues reports whether a reading is a later one of the same process.
func continues(before, now *record.AgentUse) bool {
	return before.At > 0 && now.At > before.At && now.CPUSeconds >= before.CPUSeconds
}

// waitedBetween is for how long a pod waited between two readings: its threads together.
func waitedBetween(before, now *record.AgentUse) time.Duration {
	if !continues(before, now) {
		return 0
	}
	sum := max(0, now.ThrottledSeconds-before.ThrottledSeconds) +
		max(0, now.StolenSeconds-before.StolenSeconds)
	if before.WaitedSeconds >= 0 && now.WaitedSeconds >= 0 {
		sum += max(0, now.WaitedSeconds-before.WaitedSeconds)
	}
	return inSeconds(sum)
}

func inSeconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second))
}

// overlap is how much of [from, to) is within the part.
func (p *part) overlap(s *merged.Series, from, to time.Duration) time.Duration {
	begin := time.Duration(p.first) * s.Step
	from, to = max(from, begin), min(to, begin+p.took)
	length := max(0, to-from)
	for _, w := range p.without {
		length -= max(0, min(to, w.To)-max(from, w.From))
	}
	return max(0, length)
}

// UserTime is what the users of a closed loop did with their time, by Little's law: users =
// throughput x (latency + think time).
type UserTime struct {
	// share of the time that neither requests nor think time took: the load generator did, by running
	// or by not running
	Missing float64
	// Most is the highest that the throughput can have been, in successes/s: if the load generator had
	// taken no time. Without think time the server has more to do then, so that requests take as long
	// as they did at least. With it they may have been slow as the load generator sent them in
	// bunches: none is faster than the fastest tenth of them. Intervals that do not count are as the
	// others.
	Most float64
}

// UserTimeTo returns what the users of a closed loop did in the part of a record that
// SummarizeWithout sums. users is their number at an instant, think the time between a user's
// requests. Intervals with errors, or without a success, do not count: users may have waited for a
// connection then. ok is false if none is left.
func UserTimeTo(
	s *merged.Series, measuredFrom, loadEnd time.Duration, without []Window,
	users func(time.Duration) float64, think time.Duration,
) (t UserTime, ok bool) {
	p := partTo(s, measuredFrom, loadEnd, without)
	span := max(1, int(s.LatencyStep/s.Step))
	var all, counted float64 // user-seconds, and seconds
	var latencies histogram.Distribution
	for i := (p.first + span - 1) / span * span; i+span <= p.end; i += span {
		from, to := time.Duration(i)*s.Step, time.Duration(i+span)*s.Step
		if to > time.Duration(p.first)*s.Step+p.took || p.excludes(from, to) {
			continue
		}
		if ok, bad := outcomes(s, i, i+span); ok == 0 || bad > 0 {
			continue
		}
		all += (users(from) + users(to)) / 2 * (to - from).Seconds()
		counted += (to - from).Seconds()
		for k := range s.Ops {
			latencies.Add(s.At(i).Ops[k].Latency)
		}
	}
	n := float64(latencies.Count())
	if all <= 0 || n == 0 {
		return UserTime{}, false
	}
	mean, least := latencies.Mean(), latencies.Mean()
	if think > 0 {
		least = min(mean, latencies.Quantile(fastest))
	}
	return UserTime{
		Missing: max(0, 1-n*(mean+think).Seconds()/all),
		Most:    n / counted * max(1, all/(n*(least+think).Seconds())),
	}, true
}

// fastest is the share of the requests that are as fast as any can be expected to be.
const fastest = 0.1

// outcomes counts the requests of intervals that succeeded, and the others.
func outcomes(s *merged.Series, first, end int) (ok, bad uint64) {
	for i := first; i < end; i++ {
		for k := range s.At(i).Ops {
			c := &s.At(i).Ops[k].Counts
			ok += c.OK
			bad += c.Fail + c.Unknown + c.Dropped
		}
	}
	return ok, bad
}
