package main

import (
	"errors"
	"fmt"
	"io"
)

// streams are a process's input and output: results go to out, everything else to err.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// failure is the end of a command with an exit code and without a hint at its help.
type failure struct {
	code int
	err  error // nil = already reported
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit code %d", f.code)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// broken wraps err in a failure with exit code 2, unless it has an exit code.
func broken(err error) error {
	if _, ok := errors.AsType[*failure](err); ok || err == nil {
		return err
	}
	return &failure{code: exitError, err: err}
}

// Exit codes, as the help documents them.
const (
	exitOK          = 0
	exitFailed      = 1   // the verdict is Fail; of an agent: its load failed
	exitError       = 2   // there is no verdict, or it is Inconclusive
	exitInterrupted = 130 // as in shells: 128 + SIGINT
)
