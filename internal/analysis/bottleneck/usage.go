package bottleneck

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record"
)

// usage is the CPU usage of a process over some time.
type usage struct {
	seconds, cpu, main, throttled float64
	commands                      int64
}

func (u *usage) add(o usage) {
	u.seconds += o.seconds
	u.cpu += o.cpu
	u.main += o.main
	u.throttled += o.throttled
	u.commands += o.commands
}

func (u usage) cores() float64 {
	return u.cpu / u.seconds
}

// mainThread is the CPU usage of the main thread in cores. If the server does not report it, it is
// that of the whole process: such versions have little more than one thread.
func (u usage) mainThread() float64 {
	if u.main > 0 {
		return u.main / u.seconds
	}
	return u.cores()
}

// timeline is the CPU usage of a process over the steady part, and over the busiest stretches in
// it.
type timeline struct {
	total     usage
	stretches []usage
}

func (t *timeline) record(from, to int64, u usage) {
	u.seconds = time.Duration(to - from).Seconds()
	t.total.add(u)
}

// stretch adds a stretch if it is within one steady window: a component that is at its limit in a
// fault does not limit the load otherwise.
func (t *timeline) stretch(b *record.Busy, steady []summary.Window) {
	if b.Length() == 0 || !slices.ContainsFunc(steady, func(w summary.Window) bool {
		return time.Duration(b.From) >= w.From && time.Duration(b.To) <= w.To+tolerance
	}) {
		return
	}
	seconds := func(micros int64) float64 { return float64(micros) / 1e6 }
	t.stretches = append(t.stretches, usage{
		b.Length().Seconds(), seconds(b.CPU),
		seconds(b.MainThread), seconds(b.Throttled), b.Commands,
	})
}

// busiest returns the usage over the stretch of record.BusyStretch or little more in which share is
// highest: a component that is at its limit for some seconds limits the load, whatever its mean. It
// is the total if there is no stretch of that length.
func (t *timeline) busiest(share func(usage) float64) usage {
	if len(t.stretches) == 0 {
		return t.total
	}
	return slices.MaxFunc(t.stretches, func(a, b usage) int { return cmp.Compare(share(a), share(b)) })
}

// compared returns the share of a stretch as text, and that of the total if it differs: "98% of it
// over its busiest 5s, 44% on average".
func (t *timeline) compared(worst usage, share func(usage) float64, of string) string {
	most, mean := percent(share(worst)), percent(share(t.total))
	if most == mean {
		return most + of
	}
	return fmt.Sprintf("%s%s over its busiest %.0fs, %s on average", most, of, worst.seconds, mean)
}

// stalledPod returns the evidence that a load pod did not run for so long that it limited the load.
// It does not exclude that another component was at a limit when it did; nor does it limit users
// who wait for replies for most of their time, by the kernel's stamps.
func (e *evidence) stalledPod() string {
	if e.elsewhereAtLimit() || e.refusedClients() != "" ||
		e.in.Stamped && e.service.Count() == 0 && e.inFlight >= waitingShare {
		return ""
	}
	return e.didNotRun()
}

// didNotRun returns the evidence that a load pod did not run for a part of the time: in stalls, or,
// in a closed loop, as it waited for a CPU.
func (e *evidence) didNotRun() string {
	s := e.stalls
	if s == nil || e.length < shortestEvidence {
		return ""
	}
	w := s.Waiting
	if e.service.Count() == 0 && w.Share >= stalledShare && w.Share > s.Share {
		return fmt.Sprintf(
			"load pod %d waited for a CPU for %s, beside %s in which it ran: up to %s of its time", w.Pod,
			duration(w.Waited), duration(w.Ran), percent(w.Share))
	}
	if s.Length.Seconds() < stalledShare*e.length.Seconds() {
		return ""
	}
	return fmt.Sprintf("load pod %d did not run for %s, %s of the time, at most %s at once",
		s.Pod, duration(s.Length), percent(s.Length.Seconds()/e.length.Seconds()), duration(s.Longest))
}

// starvedServer returns the evidence that Redis did not get to its requests. It waited for a CPU
// then, unless it waited for its disk, as a network that is near is rarely so full; INFO does not
// tell.
func (e *evidence) starvedServer() string {
	if e.disk() != "" {
		return ""
	}
	waited := e.waitedWithoutWork(starvedRatio, starvedLeast)
	if waited != "" {
		return "Redis waited for a CPU: " + waited
	}
	return ""
}

// The limits from which full resynchronizations are a loop: one of each replica is what a restart
// or a failover takes, a second one bad luck.
const (
	syncsLeast      = 3
	syncsPerReplica = 3
)

// Resyncs says which servers started full resynchronizations of their replicas again and again in
// the steady part of a run, which replicas did not follow meanwhile, and what may be the cause, a
// sentence for each of the first servers. A restart or a failover is no reason.
func Resyncs(in Input) (sentences []string) {
	e := gather(in)
	for _, s := range e.servers {
		n := s.syncs.full.n
		if n < max(syncsLeast, syncsPerReplica*s.syncs.replicas) || !s.lasted(&s.syncs.full) {
			continue
		}
		text := fmt.Sprintf(
			"the primary at %s started %d full resynchronizations of its replicas in %.0fs; they did not all follow in %d of %d readings",
			s.address, n, s.total.seconds, s.syncs.short, s.pairs)
		if replicas := e.replicasOf(s); len(replicas) > 0 {
			text += " (" + strings.Join(replicas, ", ") + ")"
		}
		if b := s.clients.buffered.n; 2*b >= n {
			text += fmt.Sprintf(
				": it disconnected replicas, or clients, %d times because of client-output-buffer-limit; "+
					"that of class replica is to be more than what is written while a replica receives all data", b)
		} else {
			text += ": what is written meanwhile may exceed client-output-buffer-limit replica, or the " +
				"transfer take longer than repl-timeout; the server's log tells"
		}
		sentences = append(sentences, text)
	}
	if more := len(sentences) - unreadShown; more > 0 {
		sentences = append(sentences[:unreadShown],
			fmt.Sprintf("%d more primaries started full resynchronizations again and again", more))
	}
	return sentences
}

// replicasOf lists the replicas of a primary's shard that were seen, with the number of readings in
// which they followed: one that does not is looked for elsewhere, and not read.
func (e *evidence) replicasOf(primary *server) (list []string) {
	followed := map[string]int{}
	for _, r := range e.in.Series.Servers() {
		if r.PrimaryLink == 0 || r.Shard != primary.syncs.shard ||
			time.Duration(r.At) > e.in.Series.End() {
			continue
		}
		n := followed[r.Address]
		if r.PrimaryLink == record.LinkUp && time.Duration(r.At) >= e.in.MeasuredFrom {
			followed[r.Address] = n + 1
		} else {
			followed[r.Address] = n
		}
	}
	for _, address := range slices.Sorted(maps.Keys(followed))[:min(len(followed), unreadShown)] {
		list = append(list, fmt.Sprintf("%s followed in %d", address, followed[address]))
	}
	return list
}
