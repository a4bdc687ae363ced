package main

import (
	"os"
	"slices"
	"testing"
)

// Each entry is there once, with its folders and its page, and each folder is an entry's.
func TestEntries(t *testing.T) {
	t.Parallel()
	var names []string
	for _, e := range entries {
		if slices.Contains(names, e.name) {
			t.Errorf("%s is there twice", e.name)
		}
		names = append(names, e.name)
		for _, file := range []string{
			"../../config/gallery/" + e.name, "../../config/gallery/lab/" + e.name,
			"../../docs/gallery/" + e.page() + ".md",
		} {
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %v", e.name, err)
			}
		}
	}
	folders, err := os.ReadDir("../../config/gallery")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if name := f.Name(); name != "bases" && name != "lab" && !slices.Contains(names, name) {
			t.Errorf("config/gallery/%s is no entry", name)
		}
	}
}
