package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// The end of --wait is said in words, with what to do; other errors stay as they are.
func TestEndOfWait(t *testing.T) {
	t.Parallel()
	f := &stopFlags{wait: 2 * time.Minute}
	late := f.late(fmt.Errorf("follow: %w", context.DeadlineExceeded)).Error()
	if !strings.Contains(late, "longer than 2m0s (--wait)") || !strings.Contains(late, "redquake doctor") ||
		strings.Contains(late, "context") {
		t.Error(late)
	}
	other := errors.New("forbidden")
	if err := f.late(other); !errors.Is(err, other) {
		t.Error(err)
	}
}
