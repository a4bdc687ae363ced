package load

import (
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/claims"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/lifecycle"
)

// observePartners determines how far the faults in spec.beside are, by all of the namespace.
func observePartners(s *scope.Fault, all []v1alpha1.RedisFault) {
	seen := &s.Seen.Partners
	*seen = lifecycle.Partners{}
	if d := s.Fault.Spec.Trigger.AfterBeside; d != nil {
		seen.AfterBeside = &d.Duration
	}
	for _, name := range s.Fault.Spec.Beside {
		other := faultOf(all, name)
		if other == nil {
			seen.Missing = "there is no RedisFault " + name
			continue
		}
		if waitsFor(all, other, s.Fault.Name) {
			seen.TooLate = fmt.Sprintf("RedisFault %s is to act beside this one, too: one has to be first",
				name)
			return
		}
		since, over := scope.ActsSince(other, claims.TraitsOf(other))
		if !since.IsZero() {
			s.Partners = append(s.Partners, other.UID)
		}
		switch {
		case over:
			seen.TooLate = fmt.Sprintf("RedisFault %s is over", name)
			return
		case since.IsZero():
			seen.NotYet = fmt.Sprintf("RedisFault %s does not act yet", name)
		case since.After(seen.ActSince):
			seen.ActSince = since
		}
	}
	if seen.Missing != "" || seen.NotYet != "" {
		seen.ActSince = time.Time{}
	}
}

// besideSince is since when all faults in spec.beside act, or acted when the targets were recorded;
// zero = not yet, or there are none.
func besideSince(s *scope.Fault) time.Time {
	if since := s.Fault.Status.BesideSince; since != nil {
		return since.Time
	}
	return s.Seen.ActSince
}

func faultOf(all []v1alpha1.RedisFault, name string) *v1alpha1.RedisFault {
	i := slices.IndexFunc(all, func(f v1alpha1.RedisFault) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// waitsFor reports whether a fault waits until another one acts, or for one that does.
func waitsFor(all []v1alpha1.RedisFault, f *v1alpha1.RedisFault, name string) bool {
	known := []string{f.Name}
	for i := 0; i < len(known); i++ {
		one := faultOf(all, known[i])
		if one == nil {
			continue
		}
		for _, next := range one.Spec.Beside {
			if next == name {
				return true
			}
			if !slices.Contains(known, next) {
				known = append(known, next)
			}
		}
	}
	return false
}
