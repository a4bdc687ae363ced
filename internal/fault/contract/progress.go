package contract

import "fmt"

// Stage is how far an injection or a revert is.
type Stage int

// The stages. What is complete is not called again.
const (
	StageComplete  Stage = iota
	StagePreparing       // of an injection: nothing is broken yet
	StageUnderway        // begun; it is to be called again
)

// Progress is the result of a call of Inject or Revert that did not fail. The zero value is
// complete.
type Progress struct {
	Stage   Stage
	Message string // what is missing, for people; empty where it is complete
}

// Complete reports whether nothing is left to do.
func (p Progress) Complete() bool {
	return p.Stage == StageComplete
}

// Preparing is the progress of an injection that has broken nothing yet.
func Preparing(format string, words ...any) Progress {
	return Progress{Stage: StagePreparing, Message: fmt.Sprintf(format, words...)}
}

// Underway is the progress of an injection or a revert that has begun.
func Underway(format string, words ...any) Progress {
	return Progress{Stage: StageUnderway, Message: fmt.Sprintf(format, words...)}
}
