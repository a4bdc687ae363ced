package digest

import (
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/record"
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

		FailedButExecuted: counted(v.FailedButExecuted),
		ExecutedTwice:     counted(v.ExecutedTwice),
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
			MaxBehind: result.Seconds(st.MaxBehind.Duration),
			Backwards: uint64(st.Backwards),
		}
	}
	if v.DualPrimaryWrites != nil {
		out.Dual = &result.DualPrimary{Writes: uint64(*v.DualPrimaryWrites)}
	}
	return out
}

func counted(n *int64) *uint64 {
	if n == nil {
		return nil
	}
	return new(uint64(*n))
}

// LostWrites returns the number of lost writes of a verification with its bounds; nil if it is
// unknown.
func LostWrites(v *v1alpha1.Verification) *result.Count {
	return lostWrites(v.LostWrites, v.LostWritesAtLeast, v.LostWritesAtMost)
}

// LostWritesOf is LostWrites of a fault.
func LostWritesOf(i *v1alpha1.Impact) *result.Count {
	return lostWrites(i.LostWrites, i.LostWritesAtLeast, i.LostWritesAtMost)
}

func lostWrites(exactly, atLeast, atMost *int64) *result.Count {
	switch {
	case exactly != nil:
		return &result.Count{AtLeast: uint64(*exactly), AtMost: uint64(*exactly)}
	case atLeast != nil && atMost != nil:
		return &result.Count{AtLeast: uint64(*atLeast), AtMost: uint64(*atMost)}
	}
	return nil
}

// LostWritesFields returns the values of lostWrites, lostWritesAtLeast and lostWritesAtMost: the
// number, or its bounds if they differ.
func LostWritesFields(lost result.Count) (exactly, atLeast, atMost *int64) {
	if n, exact := lost.Exact(); exact {
		return new(int64(n)), nil, nil
	}
	return nil, new(int64(lost.AtLeast)), new(int64(lost.AtMost))
}

// Ledger is what the load pods of a load that began at start have read back, as the status has it.
func Ledger(l *record.Ledger, start time.Time) *v1alpha1.Verification {
	v := &v1alpha1.Verification{
		Acknowledged:     int64(l.Acked),
		Failed:           int64(l.Failed),
		Unknown:          int64(l.Unknown),
		UnknownPresent:   int64(l.UnknownPresent),
		ReplicasRead:     int32(l.Replicas),
		MissingAtReplica: int64(l.ReplicaMissing),
		Settings:         Truncate(l.Settings, 512),
		Unread:           Truncate(l.Unknowable(), 512),
		Note: Truncate(
			strings.TrimSpace(strings.Join(append([]string{l.EvictionNote()}, l.Notes...), " ")), 1024),
	}
	if v.Unread == "" {
		v.LostWrites, v.LostWritesAtLeast, v.LostWritesAtMost = LostWritesFields(result.Count{
			AtLeast: l.LostAtLeast(),
			AtMost:  l.Lost,
		})
	}
	if l.Unread == "" && l.ExecutedTwice != nil {
		v.FailedButExecuted = new(int64(l.UnknownPresent + l.FailedPresent))
		v.ExecutedTwice = new(int64(*l.ExecutedTwice))
	}
	if v.Unread == "" && l.Lost > 0 {
		v.FirstLost, v.LastLost = instant(start, l.FirstLost), instant(start, l.LastLost)
		v.SawErrors = new(l.Errors > 0)
		for _, loss := range l.Losses {
			v.Losses = append(v.Losses, v1alpha1.LossWindow{
				First:  v1alpha1.DurationOf(time.Duration(loss.First)),
				Last:   v1alpha1.DurationOf(time.Duration(loss.Last)),
				Count:  int64(loss.Count),
				Errors: int64(loss.Errors),
				After:  v1alpha1.DurationOf(time.Duration(loss.After)),
				Until:  v1alpha1.DurationOf(time.Duration(loss.Until)),
			})
		}
	}
	if l.Stale != nil {
		v.StaleReads = &v1alpha1.StaleReads{
			Reads:     int64(l.Stale.Reads),
			Stale:     int64(l.Stale.Stale),
			MaxWrites: int64(l.Stale.MaxWrites),
			MaxBehind: v1alpha1.DurationOf(time.Duration(l.Stale.MaxBehind)),
			Backwards: int64(l.Stale.NonMonotonic + l.Stale.RolledBack),
		}
	}
	if l.Dual != nil {
		v.DualPrimaryWrites = new(int64(l.Dual.Writes))
	}
	return v
}
