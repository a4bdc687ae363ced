package fault

import (
	"testing"
	"time"
)

// lasted fails the test unless exactly so much virtual time has passed.
func lasted(t *testing.T, what string, began time.Time, want time.Duration) {
	t.Helper()
	if took := time.Since(began); took != want {
		t.Errorf("%s took %s, want %s", what, took, want)
	}
}

func never(string) time.Duration { return 24 * time.Hour }
