package digest

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
)

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
	if v.Unread == "" && l.Lost > 0 {
		v.FirstLost = &metav1.MicroTime{
			Time: start.Add(time.Duration(l.FirstLost)).UTC().Truncate(time.Microsecond),
		}
		v.LastLost = &metav1.MicroTime{
			Time: start.Add(time.Duration(l.LastLost)).UTC().Truncate(time.Microsecond),
		}
		v.SawErrors = new(l.Errors > 0)
		for _, loss := range l.Losses {
			v.Losses = append(v.Losses, v1alpha1.LossWindow{
				First:  v1alpha1.MicrosecondsOf(time.Duration(loss.First)),
				Last:   v1alpha1.MicrosecondsOf(time.Duration(loss.Last)),
				Count:  int64(loss.Count),
				Errors: int64(loss.Errors),
				After:  v1alpha1.MicrosecondsOf(time.Duration(loss.After)),
				Until:  v1alpha1.MicrosecondsOf(time.Duration(loss.Until)),
			})
		}
	}
	if l.Stale != nil {
		v.StaleReads = &v1alpha1.StaleReads{
			Reads:     int64(l.Stale.Reads),
			Stale:     int64(l.Stale.Stale),
			MaxWrites: int64(l.Stale.MaxWrites),
			MaxBehind: v1alpha1.MicrosecondsOf(time.Duration(l.Stale.MaxBehind)),
			Backwards: int64(l.Stale.NonMonotonic + l.Stale.RolledBack),
		}
	}
	if l.Dual != nil {
		v.DualPrimaryWrites = new(int64(l.Dual.Writes))
	}
	return v
}
