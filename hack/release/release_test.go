package main

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const log = changelog(`# Changelog

## [0.2.0-rc.1] - Unreleased

### Added

- Something new.

## [0.1.0] - 2026-12-01

The first release.

## [0.0.9] - 2026-11-01

[0.1.0]: https://example.com/v0.1.0
`)

func TestSnapshotIsBeforeTheNextVersion(t *testing.T) {
	version, notes, err := log.snapshot("g01234567")
	if err != nil || version != "v0.2.0-rc.1-snapshot.g01234567" || notes != "### Added\n\n- Something new." {
		t.Errorf("got %q, %q, %v", version, notes, err)
	}
	if version, _, err := changelog("# Changelog").snapshot("g01234567"); err == nil {
		t.Errorf("a changelog without versions gives %q", version)
	}
}

func TestNotesOfARelease(t *testing.T) {
	if notes, err := log.notes("v0.1.0"); err != nil || notes != "The first release." {
		t.Errorf("got %q, %v", notes, err)
	}
	for version, want := range map[string]string{
		"v0.2.0-rc.1": `no date but "Unreleased"`,
		"v0.3.0":      "no section of",
		"0.1.0":       "no section of",
		"":            "no section of",
	} {
		if notes, err := log.notes(version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("notes of %q: %q, %v", version, notes, err)
		}
	}
}

// TestTheChangelogOfThisProject holds that it is written as this program reads it.
func TestTheChangelogOfThisProject(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := changelog(text).sections()
	if len(sections) == 0 || strings.Count(string(text), "\n## ") != len(sections) {
		t.Fatalf("CHANGELOG.md has the versions %+v, and %d headings", sections, strings.Count(string(text), "\n## "))
	}
	for i, s := range sections {
		if s.text == "" || !date.MatchString(s.date) && (i > 0 || s.date != "Unreleased") {
			t.Errorf("CHANGELOG.md has for %s the date %q and the text %q", s.version, s.date, s.text)
		}
	}
}

func TestAProgramIsForThePlatformOfItsName(t *testing.T) {
	a := artifact{OS: "linux", Architecture: "arm64"}
	settings := map[string]string{"GOOS": "linux", "GOARCH": "arm64", "CGO_ENABLED": "0", "-trimpath": "true"}
	said := func() *buildinfo.BuildInfo {
		info := &buildinfo.BuildInfo{}
		for key, value := range settings {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: key, Value: value})
		}
		return info
	}
	if err := fits(a, said()); err != nil {
		t.Error(err)
	}
	for key, value := range map[string]string{"GOOS": "darwin", "GOARCH": "amd64", "CGO_ENABLED": "1", "-trimpath": ""} {
		right := settings[key]
		settings[key] = value
		if err := fits(a, said()); err == nil || !strings.Contains(err.Error(), key+"="+value) {
			t.Errorf("%s=%s: %v", key, value, err)
		}
		settings[key] = right
	}
}

func TestFindTakesTheOnlyOne(t *testing.T) {
	var r release
	err := json.Unmarshal([]byte(`[
		{"path": "m", "goos": "linux", "goarch": "amd64", "type": "Binary", "extra": {"ID": "manager"}},
		{"path": "r", "goos": "linux", "goarch": "amd64", "type": "Binary", "extra": {"ID": "redquake"}},
		{"path": "x", "goos": "linux", "goarch": "arm64", "type": "Binary", "extra": {"ID": "redquake"}},
		{"path": "y", "goos": "linux", "goarch": "arm64", "type": "Binary", "extra": {"ID": "redquake"}}
	]`), &r.built)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := r.find(binary, "redquake", "linux", "amd64"); err != nil || a.Path != "r" {
		t.Errorf("got %+v, %v", a, err)
	}
	for _, architecture := range []string{"arm64", "riscv64"} {
		if a, err := r.find(binary, "redquake", "linux", architecture); err == nil {
			t.Errorf("found %+v for %s", a, architecture)
		}
	}
}

// TestTheChartNamesTheImageByItsDigest holds that the chart of this project has the place for it, and that a chart with
// another one, or none, is not released.
func TestTheChartNamesTheImageByItsDigest(t *testing.T) {
	committed, err := os.ReadFile("../../" + chart + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	values := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(values, committed, 0o644); err != nil {
		t.Fatal(err)
	}
	r := release{Version: "v0.1.0", Image: &image{Digest: "sha256:" + strings.Repeat("1", 64)}}
	if err := r.pinImage(values); err != nil {
		t.Fatal(err)
	}
	var read struct {
		Image struct{ Repository, Digest string }
	}
	if err := yaml.Unmarshal([]byte(text(t, values)), &read); err != nil || read.Image.Digest != r.Image.Digest ||
		read.Image.Repository != repository {
		t.Errorf("the chart has the image %+v, %v", read.Image, err)
	}
	if err := r.pinImage(values); err == nil || !strings.Contains(err.Error(), "0 empty digests") {
		t.Errorf("a chart with a digest: %v", err)
	}
}

// TestChecksums holds that sha256sum reads the checksums, that they cover every file, and that a changed one is noticed.
func TestChecksums(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(assets, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a.tar.gz": "a", "install.yaml": "kind: List\n"} {
		if err := os.WriteFile(filepath.Join(assets, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := release{Version: "v0.1.0", notes: "The first.", Image: &image{Name: "x:v0.1.0", Digest: "sha256:1"}}
	if err := r.sum(); err != nil {
		t.Fatal(err)
	}
	check := func() (string, error) {
		c := exec.Command("sha256sum", "--check", "--strict", sums)
		c.Dir = assets
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := check(); err != nil || out != "a.tar.gz: OK\ninstall.yaml: OK\n" {
		t.Errorf("sha256sum: %s%v", out, err)
	}
	if err := os.WriteFile(filepath.Join(assets, "install.yaml"), []byte("kind: Secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := check(); err == nil || !strings.Contains(out, "install.yaml: FAILED") {
		t.Errorf("sha256sum of a changed file: %s%v", out, err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "release.json"))
	if err != nil {
		t.Fatal(err)
	}
	var read release
	if err := json.Unmarshal(text, &read); err != nil || len(read.Assets) != 2 || read.Assets[0].Bytes != 1 ||
		read.Image.Digest != "sha256:1" {
		t.Errorf("release.json is %s, %v", text, err)
	}
	var table strings.Builder
	if err := r.print(&table); err != nil || !strings.Contains(table.String(), "x:v0.1.0@sha256:1") ||
		!strings.Contains(table.String(), "a.tar.gz") || !strings.Contains(table.String(), r.Assets[0].SHA256) {
		t.Errorf("printed %s, %v", table.String(), err)
	}
}
