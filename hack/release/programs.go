package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// architectures are those of the image.
var architectures = []string{"amd64", "arm64"}

// artifact is one of goreleaser's, as its artifacts.json describes it.
type artifact struct {
	Name         string `json:"name"`
	Path         string `json:"path"`
	OS           string `json:"goos"`
	Architecture string `json:"goarch"`
	Type         string `json:"type"`
	Extra        struct {
		ID string `json:"ID"`
	} `json:"extra"`
}

// The types of artifacts.
const (
	binary   = "Binary"
	archive  = "Archive"
	sbom     = "SBOM"
	manifest = "Krew Plugin Manifest"
)

func (r *release) buildPrograms() error {
	arguments := []string{"release", "--clean", "--skip=publish,announce"}
	if r.snapshot {
		arguments = append(arguments, "--snapshot")
	}
	at, err := time.Parse(time.RFC3339, r.Time)
	if err != nil {
		return err
	}
	goreleaser := exec.Command("goreleaser", arguments...)
	goreleaser.Env = append(os.Environ(), "GORELEASER_CURRENT_TAG="+r.Version,
		"COMMIT_DATE="+r.Time, "COMMIT_TIMESTAMP="+strconv.FormatInt(at.Unix(), 10))
	if err := call(goreleaser); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(folder, "artifacts.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &r.built); err != nil {
		return fmt.Errorf("artifacts.json: %w", err)
	}
	if err := os.MkdirAll(assets, 0o755); err != nil {
		return err
	}
	for _, a := range r.built {
		if a.Type != archive && a.Type != sbom && a.Type != manifest {
			continue
		}
		if err := os.Rename(a.Path, r.asset(filepath.Base(a.Path))); err != nil {
			return err
		}
	}
	return nil
}

// find is the only artifact of that kind for a platform, by the ID of its build if it is a binary.
func (r *release) find(kind, id, system, architecture string) (artifact, error) {
	var found []artifact
	for _, a := range r.built {
		if a.Type == kind && (id == "" || a.Extra.ID == id) && a.OS == system && a.Architecture == architecture {
			found = append(found, a)
		}
	}
	if len(found) != 1 {
		return artifact{}, fmt.Errorf("there are %d of kind %s %s for %s/%s, want 1",
			len(found), kind, id, system, architecture)
	}
	return found[0], nil
}

// inspectPrograms holds that each program is of this version and for the platform of its name. Those
// for this machine are run.
func (r *release) inspectPrograms() error {
	count := 0
	for _, a := range r.built {
		if a.Type != binary {
			continue
		}
		count++
		info, err := buildinfo.ReadFile(a.Path)
		if err != nil {
			return err
		}
		if err := fits(a, info); err != nil {
			return fmt.Errorf("%s: %w", a.Path, err)
		}
		program, err := os.ReadFile(a.Path)
		if err != nil {
			return err
		}
		if !bytes.Contains(program, []byte(r.Version)) {
			return fmt.Errorf("%s has another version than %s", a.Path, r.Version)
		}
		if a.OS != runtime.GOOS || a.Architecture != runtime.GOARCH {
			continue
		}
		said, err := output(a.Path, "--version")
		if err != nil {
			return err
		}
		if want := a.Extra.ID + " " + r.Version + " ("; !strings.HasPrefix(said, want) {
			return fmt.Errorf("%s --version prints %q, not %s", a.Path, said, want)
		}
	}
	if want := 6 + len(architectures); count != want {
		return fmt.Errorf("there are %d programs, want %d", count, want)
	}
	return nil
}

// fits compares what a program says of its build with what it is called.
func fits(a artifact, info *buildinfo.BuildInfo) error {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	for key, want := range map[string]string{
		"GOOS":        a.OS,
		"GOARCH":      a.Architecture,
		"CGO_ENABLED": "0",
		"-trimpath":   "true",
	} {
		if settings[key] != want {
			return fmt.Errorf("its build has %s=%s, want %s", key, settings[key], want)
		}
	}
	return nil
}
