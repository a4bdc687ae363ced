// Package installed finds the programs that tests run.
package installed

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// others are names that a program has elsewhere than in Debian.
var others = map[string][]string{"chromium": {"chromium-browser", "google-chrome"}}

// Program returns the path of a program by its name in Debian, or in hack/newer-servers.sh.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Find is Program outside of a test. The path is that of the program's variable, such as
// REDQUAKE_REDIS_SERVER for redis-server; without one the program is in PATH, or where
// hack/newer-servers.sh or packages of Debian put it. hack/test-needs.sh finds it by the same
// rules.
func Find(name string) (string, error) {
	variable := "REDQUAKE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	if path := os.Getenv(variable); path != "" {
		found, err := exec.LookPath(path)
		if err != nil {
			return "", fmt.Errorf("%s: %w", variable, err)
		}
		return found, nil
	}
	for _, name := range slices.Concat([]string{name}, others[name]) {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	for _, folder := range folders() {
		path, err := exec.LookPath(filepath.Join(folder, name))
		if err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf(
		"no %s in PATH, and no %s: hack/test-needs.sh programs says what installs it", name, variable)
}

// folders are places of programs that PATH may lack.
func folders() []string {
	all := []string{"/usr/sbin"} // PATH of users has it on some systems only
	if cache, err := os.UserCacheDir(); err == nil {
		all = append(all, filepath.Join(cache, "redquake", "servers", "bin"))
	}
	postgres, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.Reverse(postgres)
	return append(all, postgres...)
}
