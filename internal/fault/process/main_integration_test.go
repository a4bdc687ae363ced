//go:build integration

package process

import (
	"testing"

	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

func TestMain(m *testing.M) { faulttest.Main(m) }

// hosted returns an empty stage with one server, in the pod redis-0.
func hosted(t *testing.T) (*faulttest.Stage, *redistest.Server) {
	t.Helper()
	s, server := faulttest.NewStage(t, Kinds, guard.Choose), redistest.Shared(t)
	s.Host("redis-0", server, nil)
	return s, server
}
