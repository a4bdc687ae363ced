package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// forTime takes --for DURATION from the end of the arguments; 0 = it is not there.
func forTime(args []string) ([]string, time.Duration, error) {
	n := len(args)
	if n < 2 || args[n-2] != "--for" {
		return args, 0, nil
	}
	length, err := time.ParseDuration(args[n-1])
	if err != nil || length <= 0 {
		return nil, 0, fmt.Errorf("--for is %q; it must be a duration such as 20s", args[n-1])
	}
	return args[:n-2], length, nil
}

// undoing is undo if there is something to undo.
func undoing(there bool, undo func() error) func() error {
	if there {
		return undo
	}
	return nil
}

// passing does something and, with a length, undoes it after that time, or earlier if this command
// is told to end.
func passing(ctx context.Context, length time.Duration, do, undo func() error) error {
	if length > 0 && undo == nil {
		return errors.New("--for is for what can be undone")
	}
	if err := do(); err != nil || length == 0 {
		return err
	}
	end := time.NewTimer(length)
	defer end.Stop()
	select {
	case <-end.C:
	case <-ctx.Done():
	}
	return undo()
}
