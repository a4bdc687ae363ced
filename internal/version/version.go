// Package version names the build.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version of this build, such as v0.1.0 or 6b6c429-dirty. The linker sets it (see the Makefile); a
// plain `go build` leaves "dev".
var Version = "dev"

// Of names the build of a program, as its --version does.
func Of(program string) string {
	return fmt.Sprintf("%s %s%s (%s, %s/%s)", program, Version, revision(), runtime.Version(),
		runtime.GOOS, runtime.GOARCH)
}

// revision is the commit in the build information, if there is one.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return " " + s.Value[:12]
		}
	}
	return ""
}
