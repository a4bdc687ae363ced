//go:build unix

package adapter

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// A program that is no adapter ends with what it said.
func TestProcessesThatAreNoAdapter(t *testing.T) {
	for _, row := range []struct {
		name    string
		command []string
		want    string
	}{
		{
			"missing",
			[]string{"/there/is/none"},
			"the adapter does not start: fork/exec /there/is/none: no such file or directory",
		},
		{"exits", []string{"sh", "-c", "exit 0"}, "the adapter has exited"},
		{
			"fails",
			[]string{"sh", "-c", "echo first >&2; echo no module redis >&2; exit 3"},
			"the adapter has ended with exit status 3: no module redis",
		},
		{"killed", []string{"sh", "-c", "kill -KILL $$"}, "the adapter has ended with signal: killed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, err := Start(t.Context(), row.command, Options{Now: Monotonic})
			var failure *Failure
			if p != nil || !errors.As(err, &failure) || err.Error() != row.want {
				t.Errorf("%v instead of %s", err, row.want)
			}
		})
	}
}

func TestAProcessThatSaysNothingIsEnded(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	command := []string{"sh", "-c", "sleep 600 & sleep 600"}
	if _, err := Start(ctx, command, Options{Now: Monotonic}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestLastWordsAreBounded(t *testing.T) {
	var w lastWords
	for range 1000 {
		_, _ = w.Write([]byte(strings.Repeat("x", 5000) + "\nthe end\n"))
	}
	if len(w.kept) > mostWords || w.err().Error() != "the end" {
		t.Error(len(w.kept), w.err())
	}
}
