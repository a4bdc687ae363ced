package installed

import (
	"os"
	"path/filepath"
	"testing"
)

// program makes an empty program.
func program(t *testing.T, folder, name string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFind(t *testing.T) {
	own, inPath, cache := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("PATH", inPath)
	t.Setenv("XDG_CACHE_HOME", cache)
	find := func(name, want string) {
		t.Helper()
		if got, err := Find(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}

	find("some-server-8", "")
	find("some-server-8", program(t, filepath.Join(cache, "redquake", "servers", "bin"), "some-server-8"))
	find("some-server-8", program(t, inPath, "some-server-8"))
	named := program(t, own, "server")
	t.Setenv("REDQUAKE_SOME_SERVER_8", named)
	find("some-server-8", named)
	t.Setenv("REDQUAKE_SOME_SERVER_8", filepath.Join(own, "missing"))
	find("some-server-8", "")

	find("chromium", program(t, inPath, "google-chrome"))
	find("chromium", program(t, inPath, "chromium"))
}
