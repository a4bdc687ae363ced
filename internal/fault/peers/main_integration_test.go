//go:build integration

package peers_test

import (
	"testing"

	"github.com/redquake/redquake/internal/testing/faulttest"
)

func TestMain(m *testing.M) { faulttest.Main(m) }
