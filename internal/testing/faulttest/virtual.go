package faulttest

import (
	"testing"
	"time"
)

// Lasted fails the test unless exactly so much virtual time has passed.
func Lasted(t *testing.T, what string, began time.Time, want time.Duration) {
	t.Helper()
	if took := time.Since(began); took != want {
		t.Errorf("%s took %s, want %s", what, took, want)
	}
}
