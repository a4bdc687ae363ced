package children

import (
	"strconv"
	"strings"
)

// share reads text such as "1%" as 0.01. The patterns of the CRD let nothing else pass; absent text is 0.
func share(text string) float64 {
	n, _ := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	return n / 100
}

// value is *p, or the zero value where it is absent.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
