package scope

import (
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/fault/contract"
)

// ActsSince returns since when a fault is complete on all its targets: until its revert begins, or,
// where nothing of it stays, until it has settled. Zero is of one that is not yet.
func ActsSince(f *v1alpha1.RedisFault, traits contract.Traits) (since time.Time, over bool) {
	status := &f.Status
	if state.IsFinished(status.Conditions) || f.DeletionTimestamp != nil || SettledAt(status) != nil ||
		traits.Stays() && (status.RevertingSince != nil || status.RevertedAt != nil) {
		return time.Time{}, true
	}
	if traits.External && status.InjectedAt != nil {
		return status.InjectedAt.Time, false
	}
	for i := range status.Targets {
		at := status.Targets[i].ActiveAt
		if at == nil {
			return time.Time{}, false
		}
		if at.After(since) {
			since = at.Time
		}
	}
	return since, false
}
