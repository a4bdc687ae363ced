//go:build integration

package drain

import (
	"testing"

	"github.com/redquake/redquake/internal/testing/faulttest"
)

func TestMain(m *testing.M) { faulttest.Main(m) }
