//go:build !linux

package bottleneck

import (
	"os"
	"path/filepath"
)

// readFile returns "" if the file cannot be read.
func readFile(dir, name string) string {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return string(text)
}
