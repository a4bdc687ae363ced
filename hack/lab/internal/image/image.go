package image

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Spec is an image to build.
type Spec struct {
	Tags         []string // all its names
	Architecture string   // by Go's name; this machine's if empty
	Created      time.Time
	Files        Files
	Config       v1.Config
}

// Write builds the image into a docker archive at path, unless exactly this image exists; reused
// reports that it did.
func (s Spec) Write(path string) (reused bool, err error) {
	img, err := s.build()
	if err != nil {
		return false, fmt.Errorf("building the image %s: %w", s.Tags[0], err)
	}
	same, err := s.isAt(path, img)
	if err != nil || same {
		return same, err
	}
	images := map[name.Reference]v1.Image{}
	for _, t := range s.Tags {
		ref, err := name.NewTag(t)
		if err != nil {
			return false, fmt.Errorf("image name %q: %w", t, err)
		}
		images[ref] = img
	}
	return false, writeArchive(path, images)
}

func writeArchive(path string, images map[name.Reference]v1.Image) error {
	return replace(path, func(w io.Writer) error { return tarball.MultiRefWrite(images, w) })
}

// replace has the file at path written, which appears whole or not at all.
func replace(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := write(w); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func (s Spec) build() (v1.Image, error) {
	data, err := s.Files.layer()
	if err != nil {
		return nil, err
	}
	img, err := mutate.ConfigFile(empty.Image, s.config())
	if err != nil {
		return nil, err
	}
	// Not compressed: the archive is read once, on this machine.
	return mutate.AppendLayers(img, static.NewLayer(data, types.DockerUncompressedLayer))
}

func (s Spec) architecture() string {
	return cmp.Or(s.Architecture, runtime.GOARCH)
}

func (s Spec) config() *v1.ConfigFile {
	created := s.Created
	if created.IsZero() {
		created = epoch
	}
	return &v1.ConfigFile{
		Created:      v1.Time{Time: created.UTC()},
		OS:           "linux",
		Architecture: s.architecture(),
		Config:       s.Config,
		RootFS:       v1.RootFS{Type: "layers"},
	}
}

// isAt reports whether the archive at path holds img under exactly the names of s. The config names
// all content by digest, so comparing it compares everything.
func (s Spec) isAt(path string, img v1.Image) (bool, error) {
	if _, err := os.Stat(path); err != nil {
		return false, nil
	}
	want, err := img.ConfigName()
	if err != nil {
		return false, err
	}
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(path) })
	if err != nil || len(manifest) != 1 {
		return false, nil // not an archive of ours: write it anew
	}
	var tags []string
	for _, t := range s.Tags {
		ref, err := name.NewTag(t)
		if err != nil {
			return false, fmt.Errorf("image name %q: %w", t, err)
		}
		tags = append(tags, ref.String())
	}
	have := manifest[0].RepoTags
	slices.Sort(tags)
	slices.Sort(have)
	return manifest[0].Config == want.String() && slices.Equal(tags, have), nil
}
