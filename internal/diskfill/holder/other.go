//go:build !linux

package holder

import (
	"context"
	"errors"

	"github.com/redquake/redquake/internal/diskfill"
)

var errLinux = errors.New("volumes are filled on Linux")

// Serve is not possible.
func Serve(context.Context, string) error { return errLinux }

// Ask is not possible.
func Ask(context.Context, string, diskfill.Order) (diskfill.State, error) {
	return diskfill.State{}, errLinux
}
