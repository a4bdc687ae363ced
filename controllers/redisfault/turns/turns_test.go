package turns

import (
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/controllers/claims"
	"github.com/redquake/redquake/controllers/redisfault/reach"
	"github.com/redquake/redquake/controllers/rules"
	"github.com/redquake/redquake/internal/faultrun"
)

// turnsOf has faults act in turn by what a cache and the API server have.
func turnsOf(cache client.Client, api client.WithWatch, now clock.PassiveClock) *Turns {
	term := faultrun.NewRegistry(nil).NewTerm()
	return &Turns{
		Clock:  now,
		Term:   term,
		Claims: claims.Reader{Client: cache, APIReader: api, Clock: now},
		Rules:  rules.Reader{APIReader: api, Clock: now},
		Reach:  &reach.Reach{Client: cache, APIReader: api, Term: term},
	}
}
