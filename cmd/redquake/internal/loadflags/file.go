package loadflags

import (
	"fmt"
	"io"
	"os"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/manifest"
)

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
