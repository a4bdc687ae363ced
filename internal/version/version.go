// Package version names the build.
package version

// Version of this build, such as v0.1.0 or 6b6c429-dirty. The linker sets it (see the Makefile); a
// plain `go build` leaves "dev".
var Version = "dev"
