package loadflags

import (
	"fmt"
	"io"
	"os"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/manifest"
	"github.com/redquake/redquake/internal/result"
)

// Advise makes doubts and evidence name flags and this process, instead of the fields and pods of a
// load in a cluster.
func Advise(run *result.Load) {
	for i := range run.Doubts {
		run.Doubts[i].Message = result.OnThisMachine(run.Doubts[i].Message)
	}
	if b := run.Bottleneck; b != nil {
		b.Evidence = result.OnThisMachine(b.Evidence)
	}
	for i := range run.Notes {
		run.Notes[i] = result.OnThisMachine(run.Notes[i])
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
