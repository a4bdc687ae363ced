//go:build integration

package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/testing/redistest"
)

// TestReadingCommandsOfServers: the commands that count as reads are those that each server flags readonly.
func TestReadingCommandsOfServers(t *testing.T) {
	redistest.Each(t, func(t *testing.T) {
		reply, err := redistest.Start(t).Client().Do(t.Context(), "COMMAND").Slice()
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, command := range reply {
			count += compareReads(t, command.([]any))
		}
		if count < 80 {
			t.Errorf("the server flags only %d commands", count)
		}
	})
}

// compareReads compares an entry of COMMAND and its subcommands with the list, and returns how many are flagged.
func compareReads(t *testing.T, command []any) (count int) {
	t.Helper()
	name, flags := strings.ToUpper(command[0].(string)), command[2].([]any)
	flagged := slices.Contains(flags, any("readonly"))
	if reads[name] != flagged && !slices.Contains(strings.Fields(keyless), name) {
		t.Errorf("%s is a read: %t; its flags are %v", name, reads[name], flags)
	}
	if flagged {
		count++
	}
	if len(command) > 9 {
		for _, sub := range command[9].([]any) {
			count += compareReads(t, sub.([]any))
		}
	}
	return count
}
