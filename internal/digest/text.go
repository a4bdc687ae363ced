package digest

import (
	"math"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/result"
)

// Truncate cuts a text to the size of a status field, at the end of a character. It may hold text of a server or of a load pod, with whatever characters.
func Truncate(text string, bytes int) string {
	text = redis.Printable(text, len(text))
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes-3], "") + "..."
}

// ErrorCounts converts the numbers of errors by class.
func ErrorCounts(counts []result.ErrorCount) []v1alpha1.ErrorCount {
	var out []v1alpha1.ErrorCount
	for _, c := range counts {
		out = append(out, v1alpha1.ErrorCount{Class: c.Class, Count: int64(min(c.Count, math.MaxInt64))})
	}
	return out
}
