//go:build integration

package config

import (
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// Valkey 9 takes io-threads at run time; the others refuse, and are left as they are.
func TestIOThreadsAtRunTime(t *testing.T) { redistest.Each(t, testIOThreadsAtRunTime) }

func testIOThreadsAtRunTime(t *testing.T) {
	t.Parallel()
	s, server := faulttest.NewHostedStage(t, Kinds, guard.Choose)
	spec := threadsFault(2, v1alpha1.ApplyLive, v1alpha1.AllowTooFewCores)
	injector, target, err := s.TryAim(spec)
	if redistest.ReleaseOf(t) != redistest.Valkey9 {
		if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonNotSupported || !p.Lasting {
			t.Errorf("%+v", p)
		}
		expectSettings(t, server, map[string]string{"io-threads": "1"})
		return
	}
	faulttest.Must(t, err)
	wantEffect(t, injector, target, v1alpha1.EffectNotObserved, "still 1 instead of 2")
	for range 2 { // the second time has no effect
		faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), target)))
		expectSettings(t, server, map[string]string{"io-threads": "2"})
	}
	wantEffect(t, injector, target, v1alpha1.EffectInconclusive, "io-threads of redis-0 is 2")
	faulttest.Must(t, faulttest.Called(s.Reborn(spec).Revert(t.Context(), target)))
	expectSettings(t, server, map[string]string{"io-threads": "1"})
}
