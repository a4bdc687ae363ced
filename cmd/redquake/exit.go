package main

import (
	"fmt"
	"io"
)

// streams are a process's input and output: results go to out, everything else to err.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// failure is an error other than a usage error, with its exit code.
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

// failed wraps err in a failure with exit code 1.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &failure{code: exitFailed, err: err}
}

// Exit codes, as the help of the root command documents them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as in shells: 128 + SIGINT
)
