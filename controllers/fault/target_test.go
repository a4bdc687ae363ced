package fault

import (
	"errors"
	"testing"
)

// A read error prevents the record of a fault, but never the revert of a recorded one.
func TestProblemOfARecordedFault(t *testing.T) {
	refusal := errors.New("secrets is forbidden")
	s := &scope{}
	if err := s.noteProblem(refusal); !errors.Is(err, refusal) || s.seen.Problem != nil {
		t.Errorf("before the record: %v, problem %+v", err, s.seen.Problem)
	}
	s.seen.Recorded = true
	if err := s.noteProblem(refusal); err != nil || s.seen.Problem == nil || s.seen.Problem.Message != refusal.Error() {
		t.Errorf("after it: %v, problem %+v", err, s.seen.Problem)
	}
	if err := (&scope{}).noteProblem(nil); err != nil {
		t.Error(err)
	}
}
