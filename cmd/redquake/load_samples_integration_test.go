//go:build integration

package main

import (
	"strings"
	"testing"

	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// The result has a message of the server for each class of errors, with both clients.
func TestErrorsHaveASample(t *testing.T) {
	server := redistest.Start(t)
	for _, driver := range []string{"Native", "GoRedis"} {
		args := []string{
			"redquake", "load", "--address", server.Address(), "--driver", driver, "--requests", "2000",
			"--users", "2", "--connections", "2", "--keys", "1",
			"--command", "SET {key} {value}", "--command", "LPUSH {key} {value}",
		}
		_, out, stderr := called(append(args, "-o", "json")...)
		r := clitest.Result(t, out)
		if len(r.Errors) != 1 || !strings.HasPrefix(r.Errors[0].Sample, "WRONGTYPE Operation against a key") {
			t.Errorf("%s: %+v\n%s", driver, r.Errors, stderr)
		}
		_, text, _ := called(args...)
		if !strings.Contains(text, "another error reply: WRONGTYPE Operation against a key") {
			t.Errorf("%s: the text is\n%s", driver, text)
		}
	}
}
