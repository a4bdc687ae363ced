package truth

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Rows whose scenarios are equal for more than the length of a file's name, or equal after all, have a file each.
func TestRowsDoNotOverwriteEachOther(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(Folder, folder)
	long := strings.Repeat("the same beginning of a scenario, ", 10)
	for _, scenario := range []string{long + "one", long + "two", "100% of 1/s", "100% of 1-s", "100% of 1-s"} {
		Report(t, "T1", scenario, "0", "0", true)
	}
	names, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(names) != 5 {
		t.Errorf("%d files (%v), expected 5", len(names), err)
	}
	for _, name := range names {
		if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), `"id":"T1"`) {
			t.Errorf("%s: %v, %s", name, err, text)
		}
	}
}
