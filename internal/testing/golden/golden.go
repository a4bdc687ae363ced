// Package golden compares what a program writes with files of testdata.
package golden

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// Updating reports whether the test was called with -update: then files are written instead of compared.
func Updating() bool {
	return *update
}

// Compare fails the test where a file does not hold a text; with -update it writes the file first.
func Compare(t testing.TB, file, got string) {
	t.Helper()
	if *update {
		err := os.WriteFile(file, []byte(got), 0o644)
		if err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n"))
	if diff != "" {
		t.Errorf("%s: -want +got, -update writes it:\n%s", file, diff)
	}
}
