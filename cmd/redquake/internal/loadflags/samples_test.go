package loadflags

import (
	"path/filepath"
	"testing"

	"github.com/redquake/redquake/internal/children"
)

// Every sample of a load test can be run.
func TestSamples(t *testing.T) {
	files, err := filepath.Glob("../../../../config/samples/loadtest*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("samples are %v, %v", files, err)
	}
	for _, file := range files {
		test, err := readLoadTest(file, nil, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := children.Plan(test, []string{"redis:6379"}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
