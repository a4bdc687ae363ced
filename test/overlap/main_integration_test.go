//go:build integration

package overlap

import (
	"os"
	"testing"

	"github.com/redquake/redquake/internal/testing/stage"
)

func TestMain(m *testing.M) { os.Exit(stage.Main(m)) }
