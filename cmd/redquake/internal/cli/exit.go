// Package cli has what all commands share: the streams of the process, and how a command ends.
package cli

import (
	"errors"
	"fmt"
	"io"
)

// Streams are a process's input and output: results go to Out, everything else to Err.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Failure is the end of a command with an exit code and without a hint at its help.
type Failure struct {
	Code int
	Err  error // nil = already reported
}

func (f *Failure) Error() string {
	if f.Err == nil {
		return fmt.Sprintf("exit code %d", f.Code)
	}
	return f.Err.Error()
}

func (f *Failure) Unwrap() error {
	return f.Err
}

// AsFailure wraps err in a failure with exit code 3, unless it has an exit code.
func AsFailure(err error) error {
	if _, ok := errors.AsType[*Failure](err); ok || err == nil {
		return err
	}
	return &Failure{Code: ExitError, Err: err}
}

// Exit codes, as the help documents them.
const (
	ExitOK           = 0
	ExitFailed       = 1   // the verdict is Fail; of an agent: its load failed
	ExitInconclusive = 2   // the verdict is Inconclusive
	ExitError        = 3   // there is no verdict: what was asked for could not be done
	ExitInterrupted  = 130 // as in shells: 128 + SIGINT
)
