package summary

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

// ledgerLate is how long ago a ledger must have been read for the lost writes to be known: checks
// are a second apart, and arrive up to a second late.
const ledgerLate = 5 * time.Second

// LiveLedger is what a record shows of lost writes while the load runs.
type LiveLedger struct {
	// acknowledged ledger writes that were found absent, by shard: a lower bound of those that were
	// lost
	Lost []uint64
	// why some ledger was not read in the 5 s before the end of the record; "" = all were
	Unread     string
	Unknowable bool // some ledger will not be read during the load
}

// Total is the number of lost writes of all shards.
func (l *LiveLedger) Total() (sum uint64) {
	for _, n := range l.Lost {
		sum += n
	}
	return sum
}

// LedgerOf returns what was found in the intervals [first, end) of a series.
func LedgerOf(s *merged.Series, first, end int) LiveLedger {
	var l LiveLedger
	for i := first; i < end; i++ {
		for shard, n := range s.At(i).Lost {
			for len(l.Lost) <= shard {
				l.Lost = append(l.Lost, 0)
			}
			l.Lost[shard] += n
		}
	}
	for pod := range s.Pods {
		if !s.IsLost(pod) && !s.IsFinished(pod) {
			l.observe(s.LedgerCheck(pod), s.End())
		}
	}
	return l
}

// observe adds the state of the checks of a pod's ledger at the end of the record.
func (l *LiveLedger) observe(check record.LedgerCheck, end time.Duration) {
	at := time.Duration(check.At)
	switch {
	case check.Unknowable:
		l.Unread, l.Unknowable = check.Failure, true
	case l.Unread != "" || at > 0 && end-at <= ledgerLate:
	case check.Failure != "":
		l.Unread = check.Failure
	case at == 0:
		l.Unread = "it has not been read yet"
	default:
		l.Unread = fmt.Sprintf("it was last read %s before the end of the record",
			(end - at).Round(100*time.Millisecond))
	}
}
