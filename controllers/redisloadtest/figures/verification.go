package figures

import (
	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/internal/digest"
)

// SetGuarantees sets what the load pods found of what applications count on. Only the status keeps
// it, as a verification.
func SetGuarantees(s *scope.Test) {
	status := &s.Test.Status
	switch g := s.Session.Guarantees; {
	case s.Seen.StartedAt.IsZero() || s.Plan == nil || !s.Plan.Workload.HasGuarantees():
	case g != nil:
		status.Guarantees = digest.Guarantees(g, s.Seen.StartedAt)
	case status.Guarantees == nil && s.Session.Finished:
		status.Guarantees = &v1alpha1.Guarantees{Untold: "no load pod told what it found"}
	}
}

// SetVerification sets the result of the load pods' ledgers. Only the status keeps it: released
// load pods no longer have it, and a session that is opened after a restart did not receive it.
func SetVerification(s *scope.Test) {
	status := &s.Test.Status
	switch l := s.Session.Ledger; {
	case s.Seen.StartedAt.IsZero() || s.Plan == nil || s.Plan.Verify == nil:
		return
	case l != nil:
		status.Verification = digest.Ledger(l, s.Seen.StartedAt)
	case status.Verification == nil && s.Session.Finished:
		status.Verification = &v1alpha1.Verification{Unread: "no load pod reported what it read back"}
	}
	if status.Verification == nil {
		return
	}
	if status.Summary != nil {
		status.Summary.LostWrites = status.Verification.LostWrites
	}
	if status.Display != nil {
		status.Display.LostWrites = digest.LostWrites(status.Verification).String()
	}
}
