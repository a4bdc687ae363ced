// Command release builds everything of a release below build/release, and publishes nothing: the
// programs by goreleaser, the image, install.yaml, the chart, lists of what is in them (SBOM), the
// krew manifest, the notes and the checksums. It installs the plugin by krew as users do, and prints
// what there is. Docker is not needed.
//
//	release -snapshot         of the commit that is checked out, for a look and for tests
//	release -version v0.1.0   of that tag, which must be checked out
//
// goreleaser, syft, helm and krew are in PATH; `make release-snapshot` and `make release` install them.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	folder     = "build/release" // goreleaser's, see .goreleaser.yaml
	assets     = folder + "/assets"
	repository = "ghcr.io/redquake/redquake"
	chart      = "charts/redquake"
)

func main() {
	snapshot := flag.Bool("snapshot", false, "name the version after CHANGELOG.md and the commit")
	version := flag.String("version", "", "the version, which is a tag, such as v0.1.0")
	flag.Parse()
	if err := run(*snapshot, *version); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(snapshot bool, version string) error {
	r, err := newRelease(snapshot, version)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"programs, archives and their SBOMs", r.buildPrograms},
		{"what the programs say of themselves", r.inspectPrograms},
		{"image for " + strings.Join(architectures, " and "), r.buildImage},
		{"install.yaml", r.writeManifests},
		{"chart", r.packageChart},
		{"plugin, installed by krew", r.installPlugin},
		{"notes, checksums and list", r.sum},
	} {
		fmt.Fprintln(os.Stderr, "release:", step.what)
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return r.print(os.Stdout)
}

// release is what is built, as far as it is known.
type release struct {
	Version  string  `json:"version"` // with its v
	Commit   string  `json:"commit"`
	Time     string  `json:"time"` // of the commit
	Go       string  `json:"go"`
	Image    *image  `json:"image"`
	Assets   []asset `json:"assets"`
	snapshot bool
	notes    string
	built    []artifact
}

// image is the manager and the load agent, as a registry will know them.
type image struct {
	Name          string   `json:"name"`
	Digest        string   `json:"digest"`
	Architectures []string `json:"architectures"`
}

func newRelease(snapshot bool, version string) (*release, error) {
	text, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return nil, err
	}
	r := &release{Version: version, snapshot: snapshot}
	if r.Commit, err = output("git", "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	if r.Time, err = output("git", "show", "--no-patch", "--format=%cI", "HEAD"); err != nil {
		return nil, err
	}
	if r.Go, err = output("go", "env", "GOVERSION"); err != nil {
		return nil, err
	}
	log := changelog(text)
	if !snapshot {
		r.notes, err = log.notes(version)
		return r, err
	}
	changed, err := output("git", "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	build := "g" + r.Commit[:8] // not digits alone, which may not begin with 0 in a version
	if changed != "" {
		build += ".dirty"
	}
	r.Version, r.notes, err = log.snapshot(build)
	return r, err
}

// number is the version as archives and charts are named, without the v.
func (r *release) number() string { return strings.TrimPrefix(r.Version, "v") }

// asset is the path of what is published under that name.
func (r *release) asset(name string) string { return filepath.Join(assets, name) }
