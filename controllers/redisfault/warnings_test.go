package redisfault

import (
	"strings"
	"testing"
)

// A warning may quote what a hostile server replied: one that did not fit would keep the status from being written.
func TestWarningsFitTheStatus(t *testing.T) {
	t.Parallel()
	var all []string
	for range 40 {
		all = append(all, strings.Repeat("\u00fc", 400))
	}
	kept := fitting(all)
	if len(kept) != 32 || len(kept[0]) > 512 || !strings.HasPrefix(kept[0], "\u00fc\u00fc") {
		t.Errorf("%d warnings, the first of %d bytes", len(kept), len(kept[0]))
	}
}
