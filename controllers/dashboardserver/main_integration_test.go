//go:build integration

package dashboardserver_test

import (
	"os"
	"testing"

	"github.com/redquake/redquake/internal/testing/operatortest"
)

func TestMain(m *testing.M) { os.Exit(operatortest.Main(m)) }
