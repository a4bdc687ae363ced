package redistest

import (
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/redquake/redquake/internal/testing/installed"
)

// Release is a version of Redis or Valkey that a test can start.
type Release struct {
	Product string // redis | valkey, as INFO has it
	Major   string // 7 | 8 | 9: its version's first number
	suffix  string // of its programs, Product-server and Product-sentinel
}

// The releases that are tested. Tests that do not choose start Redis7, which is in Debian 12;
// hack/newer-servers.sh installs the others.
var (
	Redis7  = Release{Product: "redis", Major: "7"}
	Redis8  = Release{Product: "redis", Major: "8", suffix: "-8"}
	Valkey9 = Release{Product: "valkey", Major: "9"}
)

// chosen are the releases of running tests, by the test's name.
var chosen sync.Map

// Each runs a test with each release: the servers that test and its subtests start, or are lent,
// are of that release.
func Each(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	for _, release := range []Release{Redis7, Redis8, Valkey9} {
		t.Run(release.String(), func(t *testing.T) {
			With(t, release)
			test(t)
		})
	}
}

// With chooses the release of the servers that t and its subtests start from now on.
func With(t testing.TB, release Release) {
	chosen.Store(t.Name(), release)
	t.Cleanup(func() { chosen.Delete(t.Name()) })
}

// ReleaseOf returns the release of the servers that a test starts.
func ReleaseOf(t testing.TB) Release {
	for name := t.Name(); name != ""; name = name[:max(strings.LastIndexByte(name, '/'), 0)] {
		if release, found := chosen.Load(name); found {
			return release.(Release)
		}
	}
	return Redis7
}

// String is redis-7.
func (r Release) String() string {
	return r.Product + "-" + r.Major
}

// ServerProgram returns the path of the server that a test starts by itself.
func ServerProgram(t testing.TB) string {
	t.Helper()
	return ReleaseOf(t).program(t, server)
}

// program returns the path of product-server or product-sentinel.
func (r Release) program(t testing.TB, kind kind) string {
	t.Helper()
	return installed.Program(t, r.Product+"-"+string(kind)+r.suffix)
}

// Version is that of the server that a test starts, such as 7.0.15: of the release, unless `make compat` has put another
// one in its place.
func Version(t testing.TB) string {
	t.Helper()
	return versionOf(ServerProgram(t))
}

// versionOf is what a program tells of itself; "" if it does not run, as it says when it is started.
func versionOf(program string) string {
	if known, is := versions.Load(program); is {
		return known.(string)
	}
	out, _ := exec.Command(program, "--version").Output()
	_, version, _ := strings.Cut(string(out), " v=")
	version, _, _ = strings.Cut(version, " ")
	versions.Store(program, version)
	return version
}

var versions sync.Map // by program

// isBefore7 reports whether a program is of Redis 6, which `make compat` starts as Redis7.
func isBefore7(program string) bool {
	return strings.HasPrefix(versionOf(program), "6.")
}

// since7 is a line of a configuration file that Redis 6 refuses: it has that port 10000 above the other, and needs no
// permission for DEBUG.
func since7(line string) bool {
	return strings.HasPrefix(line, "enable-debug-command ") || strings.HasPrefix(line, "cluster-port ")
}
