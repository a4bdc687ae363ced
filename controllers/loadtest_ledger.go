package controllers

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/record"
)

// lossSlack is how much after the end of a loss the fault that caused it may have been injected: servers break a moment before clients hear of it.
const lossSlack = time.Second

// verifyingSays is what the first load pod says that reads its ledger back, "" where none does.
func verifyingSays(pods []collect.PodStatus) string {
	for _, pod := range pods {
		if pod.State == agent.Verifying && !pod.Gone && pod.Message != "" {
			return pod.Message
		}
	}
	return ""
}

// setVerification fills in what the load pods' ledgers say. The status is where it is kept: pods that were let go have forgotten it, and
// a session that is opened after a restart never heard it.
func (s *loadTestScope) setVerification() {
	status := &s.test.Status
	if l := s.session.Ledger; l != nil && !s.seen.StartedAt.IsZero() {
		status.Verification = verificationStatus(l, s.seen.StartedAt)
	}
	if status.Verification == nil {
		return
	}
	if status.Summary != nil {
		status.Summary.LostWrites = status.Verification.LostWrites
	}
	s.setImpactLosses()
}

// setImpactLosses tells each fault's share of what was lost.
func (s *loadTestScope) setImpactLosses() {
	status := &s.test.Status
	if status.Verification.LostWrites == nil {
		return
	}
	before := map[string]*v1alpha1.Impact{}
	for _, i := range s.before.Status.Impacts {
		before[i.Fault] = i.Impact
	}
	injected := make([]time.Time, len(status.Impacts))
	for i := range status.Impacts {
		if at := status.Impacts[i].InjectedAt; at != nil {
			injected[i] = at.Time
		}
	}
	for i := range status.Impacts {
		at := &status.Impacts[i]
		if at.Impact == nil {
			continue
		}
		at.Impact = at.Impact.DeepCopy() // it is the fault's own
		if l := s.session.Ledger; l != nil {
			setLoss(at.Impact, lossOf(i, injected, l.Losses, s.seen.StartedAt), injected[i].Sub(s.seen.StartedAt))
		} else if old := before[at.Fault]; old != nil {
			copyLoss(at.Impact, old)
		}
	}
}

// lossOf adds up the losses that are fault i's doing: those for which it was the last one injected until lossSlack after their end.
func lossOf(i int, injected []time.Time, losses []record.Loss, start time.Time) record.Loss {
	var sum record.Loss
	for _, l := range losses {
		end := start.Add(time.Duration(l.Last) + lossSlack)
		culprit := -1
		for k, at := range injected {
			if !at.IsZero() && !at.After(end) && (culprit < 0 || at.After(injected[culprit])) {
				culprit = k
			}
		}
		if culprit != i {
			continue
		}
		if sum.Count == 0 {
			sum.First = l.First
		}
		sum.First, sum.Last = min(sum.First, l.First), max(sum.Last, l.Last)
		sum.Count += l.Count
		sum.Errors += l.Errors
	}
	return sum
}

func setLoss(impact *v1alpha1.Impact, loss record.Loss, injected time.Duration) {
	impact.LostWrites = new(int64(loss.Count))
	impact.FirstLost, impact.LastLost, impact.SawErrors = "", "", nil
	if loss.Count > 0 {
		impact.FirstLost = format.Duration(time.Duration(loss.First) - injected)
		impact.LastLost = format.Duration(time.Duration(loss.Last) - injected)
		impact.SawErrors = new(loss.Errors > 0)
	}
}

func copyLoss(to, from *v1alpha1.Impact) {
	to.LostWrites, to.FirstLost, to.LastLost, to.SawErrors = from.LostWrites, from.FirstLost, from.LastLost, from.SawErrors
}

func verificationStatus(l *record.Ledger, start time.Time) *v1alpha1.Verification {
	v := &v1alpha1.Verification{
		Acknowledged: int64(l.Acked), Failed: int64(l.Failed), Unknown: int64(l.Unknown), UnknownPresent: int64(l.UnknownPresent),
		ReplicasRead: int32(l.Replicas), MissingAtReplica: int64(l.ReplicaMissing),
		Settings: limited(l.Settings, 512), Unread: limited(l.Unknowable(), 512), Note: limited(strings.Join(l.Notes, " "), 1024),
	}
	if v.Unread == "" {
		v.LostWrites = new(int64(l.Lost))
	}
	if v.LostWrites != nil && l.Lost > 0 {
		v.FirstLost = &metav1.MicroTime{Time: start.Add(time.Duration(l.FirstLost)).UTC().Truncate(time.Microsecond)}
		v.LastLost = &metav1.MicroTime{Time: start.Add(time.Duration(l.LastLost)).UTC().Truncate(time.Microsecond)}
		v.SawErrors = new(l.Errors > 0)
	}
	if l.Stale != nil {
		v.StaleReads = &v1alpha1.StaleReads{
			Reads: int64(l.Stale.Reads), Stale: int64(l.Stale.Stale), MaxWrites: int64(l.Stale.MaxWrites),
			MaxBehind: format.Duration(time.Duration(l.Stale.MaxBehind)), Backwards: int64(l.Stale.NonMonotonic + l.Stale.RolledBack),
		}
	}
	if l.Dual != nil {
		v.DualPrimaryWrites = new(int64(l.Dual.Writes))
	}
	return v
}
