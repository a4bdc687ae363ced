package plan

import (
	"fmt"
	"slices"
	"strings"
)

// unknown is a problem where value is none of known.
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

// firstOf is the first problem.
func firstOf(problems ...string) string {
	for _, problem := range problems {
		if problem != "" {
			return problem
		}
	}
	return ""
}
