package engine

import "testing"

// A process needs a file for each connection, beside those that it has and some others.
func TestTooManyFiles(t *testing.T) {
	for _, tc := range []struct {
		limit, open, connections int
		refused                  bool
	}{
		{1024, 10, 900, false},
		{1024, 10, 1024 - 10 - spareFiles, false},
		{1024, 10, 1024 - 10 - spareFiles + 1, true},
		{64, 10, 200, true},
		{0, 0, 1_000_000, false}, // unknown
	} {
		if err := tooManyFiles(tc.limit, tc.open, tc.connections); (err != nil) != tc.refused {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}
