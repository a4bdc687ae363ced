package faultrun

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/summary"
)

// LostWritesField is the path of the limit on lost writes.
const LostWritesField = "spec.stopIf.lostWrites"

// ledgerReadWithin is how long a check before the injection waits for the ledger to be read: a load
// that has just begun has not read it yet.
const ledgerReadWithin = 5 * time.Second

// lostWrites compares the lost writes that are known with their limit. That the ledger was not read
// lately is no breach: Redis may be down, for which there is another condition. That it cannot be
// read any more is one, as then the condition would never hold.
func (s *Stops) lostWrites(ledger *summary.LiveLedger) *v1alpha1.Breach {
	limit := s.Spec.LostWrites
	switch {
	case limit == nil:
	case ledger.Total() >= uint64(*limit):
		return BreachOf(LostWritesField, true,
			fmt.Sprintf("%d acknowledged ledger writes are lost%s, limit %d",
				ledger.Total(), ofShards(ledger.Lost), *limit))
	case ledger.Unknowable:
		return BreachOf(LostWritesField, false,
			"lost writes are not known while the load runs: "+ledger.Unread)
	}
	return nil
}

// ofShards says of which shards lost writes are, if there are several.
func ofShards(lost []uint64) string {
	var each []string
	for shard, n := range lost {
		if n > 0 {
			each = append(each, fmt.Sprintf("%d of shard %d", n, shard))
		}
	}
	if len(lost) < 2 {
		return ""
	}
	if len(each) > 8 {
		each = append(each[:8], "...")
	}
	return " (" + strings.Join(each, ", ") + ")"
}

// ledgerUnread is the breach of a fault whose load does not read its ledger: the condition would
// never hold. It waits for the ledger of a load that has just begun.
func (s *Stops) ledgerUnread(ctx context.Context, lately func() *impact.Live) *v1alpha1.Breach {
	ctx, cancel := context.WithTimeout(ctx, ledgerReadWithin)
	defer cancel()
	why := ""
	for again := true; again; again = pauseFor(ctx, liveEvery) {
		now := lately()
		if now == nil {
			why = ErrNoRecord.Error()
			continue
		}
		if why = now.Ledger.Unread; why == "" {
			return nil
		}
	}
	return BreachOf(LostWritesField, false, "the load pods cannot look for lost writes: "+why)
}

// LimitsLosses reports whether a fault is to be reverted at lost writes.
func LimitsLosses(f *v1alpha1.RedisFault) bool {
	return f.Spec.StopIf != nil && f.Spec.StopIf.LostWrites != nil
}
