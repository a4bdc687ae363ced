package bottleneck

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// syncs is what the readings of a primary tell of the synchronizations of its replicas.
type syncs struct {
	full     counter // that it has started
	partial  int64
	replicas int64 // the most that were connected
	short    int   // readings in which not all that had been connected followed
	shard    int64
}

func (s *syncs) add(before, now *record.Server, over float64) {
	s.full.add(before.FullSyncs, now.FullSyncs, over)
	s.partial += max(0, now.PartialSyncs-before.PartialSyncs)
	s.replicas, s.shard = max(s.replicas, before.Replicas, now.Replicas), now.Shard
	if s.replicas > now.SyncedReplicas {
		s.short++
	}
}

// bufferedClients is how many clients were disconnected because of client-output-buffer-limit. A
// replica that was comes back for a synchronization, sooner or later.
func (s *server) bufferedClients() int64 {
	return max(0, s.buffered.n-s.syncs.full.n-s.syncs.partial-s.syncs.replicas)
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
		if b := s.buffered.n; 2*b >= n {
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
		if n := followed[r.Address]; r.PrimaryLink == record.LinkUp &&
			time.Duration(r.At) >= e.in.MeasuredFrom {
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
