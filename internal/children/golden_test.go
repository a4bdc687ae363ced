package children

import (
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/internal/testing/golden"
)

// golden compares object as YAML with testdata/name.
func isGolden(t *testing.T, name string, object any) {
	t.Helper()
	got, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name)
	golden.Compare(t, file, string(got))
}
