package output

import (
	"fmt"
	"strings"

	"github.com/redquake/redquake/internal/result"
)

// verification writes the result of reading back the ledger writes.
func verification(b *strings.Builder, v *result.Verification) {
	switch lost := v.LostWrites(); {
	case lost == nil:
		line(b, "Lost writes", "not known: %s", v.Unread)
	case lost.AtMost == 0:
		line(b, "Lost writes", "none of %d acknowledged ledger writes (%s)", v.Acknowledged, qualification(v))
	default:
		seen := "no client saw an error then"
		if v.Errors > 0 {
			seen = fmt.Sprintf("about %d requests failed then", v.Errors)
		}
		text := fmt.Sprintf("%d of %d acknowledged ledger writes, at least", lost.AtMost, v.Acknowledged)
		if _, exact := lost.Exact(); !exact {
			text = fmt.Sprintf("between %d and %d of %d acknowledged ledger writes, as others may have been evicted", lost.AtLeast, lost.AtMost, v.Acknowledged)
		}
		line(b, "Lost writes", "%s, acknowledged from %s to %s; %s (%s)", text, seconds(v.FirstLost), seconds(v.LastLost), seen, qualification(v))
	}
	if s := v.Stale; s != nil {
		line(b, "Stale reads", "%d of %d replies of replicas, at most %d writes and %s behind; %d went backwards", s.Stale, s.Reads, s.MaxWrites, seconds(s.MaxBehind), s.Backwards)
	}
	if d := v.Dual; d != nil && d.Writes == 0 {
		line(b, "Primaries", "never two at the same time")
	} else if d != nil {
		line(b, "Primaries", "two at the same time: %d writes accepted by a second one, from %s to %s", d.Writes, seconds(d.First), seconds(d.Last))
	}
}

// qualification returns the facts that limit a statement about lost writes.
func qualification(v *result.Verification) string {
	text := fmt.Sprintf("%d unknown, %d of them present; read at every primary and %d replicas", v.Unknown, v.UnknownPresent, v.Replicas)
	if v.ReplicaMissing > 0 {
		text += fmt.Sprintf(", one of which lacks %d", v.ReplicaMissing)
	}
	if v.Settings != "" {
		text += "; " + v.Settings
	}
	return text
}
