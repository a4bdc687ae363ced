//go:build integration

package fault

import (
	"os"
	"testing"

	"github.com/redquake/redquake/internal/testing/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Run(m)) }
