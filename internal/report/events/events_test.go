package events

import (
	"testing"

	"github.com/redquake/redquake/internal/report"
)

// Every owner has a name, also one that a later version has added: sentences begin with it.
func TestOwnerName(t *testing.T) {
	for owner, want := range map[report.Owner]string{
		report.Client: "the clients", "Storage": "Storage", "": "an unknown owner",
	} {
		if got := OwnerName(owner); got != want {
			t.Errorf("%q: %q, want %q", owner, got, want)
		}
	}
}
