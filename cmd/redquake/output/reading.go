package output

import (
	"strconv"
	"time"

	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// figure is one of a workload's figures as text: a count, a share such as 99.2%, a mean such as 0.41ms.
func figure(f result.Figure) string {
	switch {
	case f.Share != nil:
		return format.Share(*f.Share)
	case f.Seconds != nil:
		return format.Duration(time.Duration(*f.Seconds))
	case f.Count != nil:
		return strconv.FormatUint(*f.Count, 10)
	}
	return ""
}
