package plan

import (
	"fmt"
	"slices"
	"strings"
)

// unknown returns a problem if value is not one of known.
func unknown[T ~string](field string, value T, known ...T) string {
	if slices.Contains(known, value) {
		return ""
	}
	var names []string
	for _, name := range known {
		if name != "" {
			names = append(names, string(name))
		}
	}
	return fmt.Sprintf("%s: %q is none of %s", field, value, strings.Join(names, ", "))
}

// firstOf returns the first problem.
func firstOf(problems ...string) string {
	for _, problem := range problems {
		if problem != "" {
			return problem
		}
	}
	return ""
}
