package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// buildImage writes the image as an OCI archive, and a list of what is in it for each architecture.
func (r *release) buildImage() error {
	r.Image = &image{Name: repository + ":" + r.Version, Architectures: architectures}
	archive := r.asset("redquake_" + r.number() + "_image.tar")
	arguments := []string{
		"image", "redquake", "--oci", "--tag", r.Image.Name, "-o", archive,
		"--version", r.Version, "--revision", r.Commit, "--created", r.Time,
	}
	for _, architecture := range architectures {
		for _, program := range []string{"manager", "redquake", "netfault"} {
			a, err := r.find(binary, program, "linux", architecture)
			if err != nil {
				return err
			}
			arguments = append(arguments, "--"+program, a.Path)
		}
	}
	var err error
	if r.Image.Digest, err = output("hack/lab/lab", arguments...); err != nil {
		return err
	}
	for _, architecture := range architectures {
		syft := exec.Command("syft", "oci-archive:"+archive, "--platform", "linux/"+architecture,
			"--source-name", repository, "--source-version", r.Image.Digest,
			"--output", "spdx-json="+r.asset("redquake_"+r.number()+"_image_linux_"+architecture+".spdx.json"))
		syft.Env = append(os.Environ(), "SYFT_CHECK_FOR_APP_UPDATE=false")
		if err := call(syft); err != nil {
			return err
		}
	}
	return nil
}

// writeManifests writes install.yaml, which names the image by its digest.
func (r *release) writeManifests() error {
	if err := call(exec.Command("make", "build/install.yaml", "IMG="+r.Image.Name+"@"+r.Image.Digest)); err != nil {
		return err
	}
	return os.Rename("build/install.yaml", r.asset("install.yaml"))
}

// packageChart packs the chart, whose version is that of the program. A commit of before there was
// one has none; a release has one.
func (r *release) packageChart() error {
	if _, err := os.Stat(chart); r.snapshot && errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(os.Stderr, "there is no", chart)
		return nil
	}
	// A copy whose files have the commit's time, which helm keeps.
	copied := filepath.Join("build", chart)
	if err := os.RemoveAll(copied); err != nil {
		return err
	}
	if err := os.CopyFS(copied, os.DirFS(chart)); err != nil {
		return err
	}
	if err := r.pinImage(filepath.Join(copied, "values.yaml")); err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, r.Time)
	if err != nil {
		return err
	}
	err = filepath.WalkDir(copied, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, at, at)
	})
	if err != nil {
		return err
	}
	return call(exec.Command("helm", "package", copied, "--version", r.number(), "--app-version", r.Version,
		"--destination", assets))
}

// noDigest is the line of the chart's values in which a release names its image.
var noDigest = regexp.MustCompile(`(?m)^  digest: "".*$`)

// pinImage makes the digest of the image a default of the chart: who has checked the chart's
// signature has checked the image.
func (r *release) pinImage(values string) error {
	text, err := os.ReadFile(values)
	if err != nil {
		return err
	}
	if found := noDigest.FindAll(text, -1); len(found) != 1 {
		return fmt.Errorf("%s has %d empty digests, want that of the image", values, len(found))
	}
	pinned := "  digest: " + r.Image.Digest + " # of " + r.Version + "; with tag set this to an empty text"
	return os.WriteFile(values, noDigest.ReplaceAllLiteral(text, []byte(pinned)), 0o644)
}
