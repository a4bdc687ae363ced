package redisloadtest

import (
	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/digest"
)

// verifyingMessage returns the message of the first load pod that is reading its ledger back, "" if
// none is.
func verifyingMessage(pods []collect.PodStatus) string {
	for _, pod := range pods {
		if pod.State == agent.Verifying && !pod.Gone && pod.Message != "" {
			return pod.Message
		}
	}
	return ""
}

// setVerification sets the result of the load pods' ledgers. Only the status keeps it: released
// load pods no longer have it, and a session that is opened after a restart did not receive it.
func (s *scope) setVerification() {
	status := &s.test.Status
	switch l := s.session.Ledger; {
	case s.seen.StartedAt.IsZero() || s.plan == nil || s.plan.Verify == nil:
		return
	case l != nil:
		status.Verification = digest.Ledger(l, s.seen.StartedAt)
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
		status.Display.LostWrites = digest.LostWrites(status.Verification).String()
	}
}
