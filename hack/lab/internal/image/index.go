package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// WriteIndex writes one image for several architectures to path, as an OCI archive with compressed
// layers, ready for a registry. All specs have the same single name. It returns the digest of the
// index, by which a registry knows the image.
func WriteIndex(path string, specs ...Spec) (v1.Hash, error) {
	tag, err := commonTag(specs)
	if err != nil {
		return v1.Hash{}, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	architectures := map[string]bool{}
	for _, s := range specs {
		img, err := s.compressed()
		if err != nil {
			return v1.Hash{}, fmt.Errorf("building the image %s for %s: %w", tag, s.architecture(), err)
		}
		if architectures[s.architecture()] {
			return v1.Hash{}, fmt.Errorf("the image %s is twice for %s", tag, s.architecture())
		}
		architectures[s.architecture()] = true
		platform := &v1.Platform{OS: "linux", Architecture: s.architecture()}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        container{img},
			Descriptor: v1.Descriptor{Platform: platform},
		})
	}
	// A registry shows the annotations of the index, not the labels of the images in it.
	index = mutate.Annotations(index, specs[0].Config.Labels).(v1.ImageIndex)
	digest, err := index.Digest()
	if err != nil {
		return v1.Hash{}, err
	}
	return digest, writeLayout(path, tag, index)
}

// container is an image to run. Without this the index would name its config as the type of an
// artifact, which it is not.
type container struct{ v1.Image }

// ArtifactType is none.
func (container) ArtifactType() (string, error) { return "", nil }

// commonTag is the one name of all specs.
func commonTag(specs []Spec) (name.Tag, error) {
	if len(specs) == 0 {
		return name.Tag{}, errors.New("an image needs programs of at least one architecture")
	}
	for _, s := range specs {
		if len(s.Tags) != 1 || s.Tags[0] != specs[0].Tags[0] {
			return name.Tag{}, fmt.Errorf("an image for several architectures has one name, not %v and %v",
				specs[0].Tags, s.Tags)
		}
	}
	return name.NewTag(specs[0].Tags[0])
}

// compressed is the image in OCI's media types, as registries store it.
func (s Spec) compressed() (v1.Image, error) {
	data, err := s.Files.layer()
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if img, err = mutate.ConfigFile(img, s.config()); err != nil {
		return nil, err
	}
	return mutate.AppendLayers(img, layer)
}

// writeLayout writes the index as the only entry of an OCI image layout, packed into one file that
// is the same to the byte if the images are.
func writeLayout(path string, tag name.Tag, index v1.ImageIndex) error {
	dir, err := os.MkdirTemp("", "image-layout")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	in, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	names := map[string]string{
		"io.containerd.image.name":          tag.Name(),
		"org.opencontainers.image.ref.name": tag.TagStr(),
	}
	if err := in.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return err
	}
	return replace(path, func(w io.Writer) error { return pack(w, dir) })
}

// pack writes the files below dir as a tar archive.
func pack(w io.Writer, dir string) error {
	archive := tar.NewWriter(w)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		inside, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		err = archive.WriteHeader(&tar.Header{
			Name:    inside,
			Mode:    0o644,
			Size:    int64(len(data)),
			ModTime: epoch,
			Format:  tar.FormatPAX,
		})
		if err != nil {
			return err
		}
		_, err = archive.Write(data)
		return err
	})
	return errors.Join(err, archive.Close())
}
