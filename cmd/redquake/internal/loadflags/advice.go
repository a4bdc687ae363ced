package loadflags

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/manifest"
	"github.com/redquake/redquake/internal/result"
)

var (
	connectionsOfPods = regexp.MustCompile(`set client\.connections to ([0-9]+) per load pod`)
	advice            = strings.NewReplacer("load pod 0 did not run", "this process did not run",
		"load pod 0 waited", "this process waited",
		"Use a second load pod on another node, a higher CPU limit, or a machine that is less busy",
		"Use a machine that is less busy")
)

// Advise makes the doubts name flags and this process, instead of the fields and pods of a load in
// a cluster.
func Advise(run *result.Load) {
	for i := range run.Doubts {
		d := &run.Doubts[i]
		switch d.Reason {
		case "UsersQueue":
			d.Message = connectionsOfPods.ReplaceAllString(d.Message, "set --connections to $1")
		case impact.GeneratorStalled, impact.GeneratorStarved:
			d.Message = advice.Replace(d.Message)
		}
	}
}

// readLoadTest reads the RedisLoadTest in a file, "-" = in. Errors begin with the file.
// complete may add to the spec, as of manifest.ReadLoadTest.
func readLoadTest(
	file string, in io.Reader, complete func(spec map[string]any),
) (*v1alpha1.RedisLoadTest, error) {
	name := file
	if file == "-" {
		name = "standard input"
	} else {
		opened, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("--file: %w", err)
		}
		defer func() { _ = opened.Close() }()
		in = opened
	}
	test, err := manifest.ReadLoadTest(in, complete)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return test, nil
}
