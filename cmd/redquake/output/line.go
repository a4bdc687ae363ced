package output

import (
	"fmt"
	"strings"
)

// line writes one "name  text" line; names are padded to one width.
func line(b *strings.Builder, name, format string, args ...any) {
	fmt.Fprintf(b, "%-11s "+format+"\n", append([]any{name}, args...)...)
}
