package meshtest

import (
	"os"
	"regexp"
	"testing"

	"github.com/redquake/redquake/internal/testing/cluster"
)

// The CRDs of the tests come from one module, the Go types from another: both are of the version of the types.
func TestVersions(t *testing.T) {
	version := regexp.MustCompile(`(?m)github\.com/chaos-mesh/chaos-mesh/api (v\S+)$`)
	var found []string
	for _, name := range []string{"go.mod", "hack/chaosmesh/go.mod"} {
		path, err := cluster.Path(name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all := version.FindAllStringSubmatch(string(text), -1)
		if len(all) == 0 {
			t.Fatalf("%s names no version of Chaos Mesh's types", name)
		}
		found = append(found, all[len(all)-1][1]) // a replacement comes last
	}
	if found[0] != found[1] {
		t.Errorf("go.mod has version %s of Chaos Mesh's types, hack/chaosmesh/go.mod has %s", found[0], found[1])
	}
}
