package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/internal/version"
)

func newVersion(io cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this build",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(io.Out, build())
			return cli.AsFailure(err)
		},
	}
}

// build names this build.
func build() string {
	return fmt.Sprintf("redquake %s%s (%s, %s/%s)", version.Version, revision(), runtime.Version(),
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
