package digest

import (
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/result"
)

// VerificationOf is what was read back, by the status of a load that began at start: only that
// keeps it when the load pods are released; nil = nothing was.
func VerificationOf(v *v1alpha1.Verification, start time.Time) *result.Verification {
	if v == nil {
		return nil
	}
	out := &result.Verification{
		Acknowledged:   uint64(v.Acknowledged),
		Failed:         uint64(v.Failed),
		Unknown:        uint64(v.Unknown),
		UnknownPresent: uint64(v.UnknownPresent),
		Replicas:       int(v.ReplicasRead),
		ReplicaMissing: uint64(v.MissingAtReplica),
		Settings:       v.Settings,
		Unread:         v.Unread,
	}
	if lost := LostWrites(v); lost != nil {
		out.SetLost(*lost)
	}
	if v.FirstLost != nil && v.LastLost != nil {
		out.FirstLost = result.Seconds(v.FirstLost.Sub(start))
		out.LastLost = result.Seconds(v.LastLost.Sub(start))
	}
	if st := v.StaleReads; st != nil {
		out.Stale = &result.StaleReads{
			Reads:     uint64(st.Reads),
			Stale:     uint64(st.Stale),
			MaxWrites: uint64(st.MaxWrites),
			MaxBehind: result.Seconds(st.MaxBehind.Duration()),
			Backwards: uint64(st.Backwards),
		}
	}
	if v.DualPrimaryWrites != nil {
		out.Dual = &result.DualPrimary{Writes: uint64(*v.DualPrimaryWrites)}
	}
	return out
}
