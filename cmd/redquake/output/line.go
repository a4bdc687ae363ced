package output

import (
	"fmt"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// line writes one "name  text" line; names are padded to one width.
func line(b *strings.Builder, name, format string, args ...any) {
	fmt.Fprintf(b, "%-11s "+format+"\n", append([]any{name}, args...)...)
}

func seconds(s result.Seconds) string { return format.Duration(time.Duration(s)) }
