package digest

import (
	"fmt"
	"math"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/result"
)

// Truncate cuts a text to the size of a status field, at the end of a character. It may hold text
// of a server or of a load pod, with whatever characters.
func Truncate(text string, bytes int) string {
	text = redis.Printable(text, len(text))
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes-3], "") + "..."
}

// mostListed is how many texts a list names.
const mostListed = 5

// List joins texts; of many it has the first ones and says how many more there are.
func List(all []string) string {
	if more := len(all) - mostListed; more > 0 {
		return fmt.Sprintf("%s; and %d more", strings.Join(all[:mostListed], "; "), more)
	}
	return strings.Join(all, "; ")
}

// ErrorCounts converts the numbers of errors by class.
func ErrorCounts(counts []result.ErrorCount) []v1alpha1.ErrorCount {
	var out []v1alpha1.ErrorCount
	for _, c := range counts {
		out = append(out, v1alpha1.ErrorCount{Class: c.Class, Count: int64(min(c.Count, math.MaxInt64))})
	}
	return out
}
