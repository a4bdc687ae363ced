//go:build integration

package redistest

import "testing"

// The servers and sentinels of a test are of its release, also in subtests, and lent ones.
func TestEach(t *testing.T) {
	Each(t, func(t *testing.T) {
		t.Parallel()
		release := ReleaseOf(t)
		t.Run("within", func(t *testing.T) {
			for _, s := range append(SharedReplication(t, 1).Servers(), Shared(t)) {
				info, err := s.info(t.Context(), "server")
				if err != nil || info.Name() != release.Product || info.Version()[:1] != release.Major {
					t.Errorf("%s %s, %v, want %s", info.Name(), info.Version(), err, release)
				}
			}
		})
	})
	if ReleaseOf(t) != Redis7 {
		t.Errorf("without a choice it is %s", ReleaseOf(t))
	}
}
