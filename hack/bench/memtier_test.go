package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReleaseBuild(t *testing.T) {
	const release, cpp, c = "memtier_benchmark v=2.3.0 sha=00000000:0 bits=64", "GNU C++17 12.2.0 -march=x86-64 -g ",
		"GNU C17 12.2.0 -march=x86-64 -g "
	for _, tt := range []struct {
		name, version string
		producers     []string
		want          string // "" = refused
	}{
		{"its own flags", release, []string{cpp + "-O2", c + "-O2"}, "compiled with -O2"},
		{"the last flag counts", release, []string{cpp + "-O0 -O3"}, "compiled with -O3"},
		{"for size", release, []string{cpp + "-Os"}, "compiled with -Os"},
		{"stripped", release, nil, "optimization not known: no debug information of GCC"},
		{
			"another compiler",
			release,
			[]string{"Debian clang version 14.0.6"},
			"optimization not known: no debug information of GCC",
		},
		{"not optimized", release, []string{cpp + "-O2", cpp}, ""},
		{"switched off", release, []string{cpp + "-O0"}, ""},
		{"switched off later", release, []string{cpp + "-O2 -O0"}, ""},
		{"sanitized", release, []string{cpp + "-O2 -fsanitize=address"}, ""},
		{"a development version", "memtier_benchmark v=255.255.255 sha=00000000:0", []string{cpp + "-O2"}, ""},
		{"does not run", "", []string{cpp + "-O2"}, ""},
	} {
		got, err := releaseBuild(tt.version, tt.producers)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
}

// A program of GCC names it and its options in its debug information; a text, and a program without debug information,
// name nothing.
func TestProducers(t *testing.T) {
	folder := t.TempDir()
	source := filepath.Join(folder, "main.c")
	if err := os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	compile := func(name string, flags ...string) string {
		program := filepath.Join(folder, name)
		if out, err := exec.Command("gcc", append(flags, "-o", program, source)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return program
	}
	got := producers(compile("debug", "-g", "-O2"))
	if !slices.ContainsFunc(got, func(p string) bool {
		return strings.HasPrefix(p, "GNU C") &&
			strings.Contains(p, "-O2")
	}) {
		t.Errorf("%q, want GCC and -O2", got)
	}
	for _, path := range []string{source, compile("stripped", "-s")} {
		if got := producers(path); got != nil {
			t.Errorf("%s has %q", path, got)
		}
	}
}
