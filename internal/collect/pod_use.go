package collect

import (
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

// AddPodUses adds readings of observed pods to the record; those that it has are ignored. The next
// checkpoint contains them.
func (s *Session) AddPodUses(uses []record.PodUse) {
	s.record.Lock()
	defer s.record.Unlock()
	s.merged(func(series *merged.Series) {
		if series.AddPodUses(uses) {
			s.grown = true
		}
	})
}
