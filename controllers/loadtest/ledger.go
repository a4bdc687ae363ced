package loadtest

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
)

// verifyingMessage returns the message of the first load pod that is reading its ledger back, "" if none is.
func verifyingMessage(pods []collect.PodStatus) string {
	for _, pod := range pods {
		if pod.State == agent.Verifying && !pod.Gone && pod.Message != "" {
			return pod.Message
		}
	}
	return ""
}

// setVerification sets the result of the load pods' ledgers. Only the status keeps it: released load pods no longer have it, and a session that is
// opened after a restart did not receive it.
func (s *scope) setVerification() {
	status := &s.test.Status
	switch l := s.session.Ledger; {
	case s.seen.StartedAt.IsZero() || s.plan == nil || s.plan.Verify == nil:
		return
	case l != nil:
		status.Verification = verificationStatus(l, s.seen.StartedAt)
	case status.Verification == nil && s.session.Finished:
		status.Verification = &v1alpha1.Verification{Unread: "no load pod reported what it read back"}
	}
	if status.Verification == nil {
		return
	}
	if status.Summary != nil {
		status.Summary.LostWrites = status.Verification.LostWrites
	}
	if status.Display != nil {
		status.Display.LostWrites = state.LostWrites(status.Verification).String()
	}
}

// verificationStatus converts the ledger of a load that began at start.
func verificationStatus(l *record.Ledger, start time.Time) *v1alpha1.Verification {
	v := &v1alpha1.Verification{
		Acknowledged: int64(l.Acked), Failed: int64(l.Failed), Unknown: int64(l.Unknown), UnknownPresent: int64(l.UnknownPresent),
		ReplicasRead: int32(l.Replicas), MissingAtReplica: int64(l.ReplicaMissing),
		Settings: digest.Truncate(l.Settings, 512), Unread: digest.Truncate(l.Unknowable(), 512), Note: digest.Truncate(strings.TrimSpace(strings.Join(append([]string{l.EvictionNote()}, l.Notes...), " ")), 1024),
	}
	if v.Unread == "" {
		v.LostWrites, v.LostWritesAtLeast, v.LostWritesAtMost = state.LostWritesFields(result.Count{AtLeast: l.LostAtLeast(), AtMost: l.Lost})
	}
	if v.Unread == "" && l.Lost > 0 {
		v.FirstLost = &metav1.MicroTime{Time: start.Add(time.Duration(l.FirstLost)).UTC().Truncate(time.Microsecond)}
		v.LastLost = &metav1.MicroTime{Time: start.Add(time.Duration(l.LastLost)).UTC().Truncate(time.Microsecond)}
		v.SawErrors = new(l.Errors > 0)
		for _, loss := range l.Losses {
			v.Losses = append(v.Losses, v1alpha1.LossWindow{
				First: v1alpha1.MicrosecondsOf(time.Duration(loss.First)), Last: v1alpha1.MicrosecondsOf(time.Duration(loss.Last)),
				Count: int64(loss.Count), Errors: int64(loss.Errors),
				After: v1alpha1.MicrosecondsOf(time.Duration(loss.After)), Until: v1alpha1.MicrosecondsOf(time.Duration(loss.Until)),
			})
		}
	}
	if l.Stale != nil {
		v.StaleReads = &v1alpha1.StaleReads{
			Reads: int64(l.Stale.Reads), Stale: int64(l.Stale.Stale), MaxWrites: int64(l.Stale.MaxWrites),
			MaxBehind: v1alpha1.MicrosecondsOf(time.Duration(l.Stale.MaxBehind)), Backwards: int64(l.Stale.NonMonotonic + l.Stale.RolledBack),
		}
	}
	if l.Dual != nil {
		v.DualPrimaryWrites = new(int64(l.Dual.Writes))
	}
	return v
}
