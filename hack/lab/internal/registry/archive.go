package registry

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// read stores the images of an archive. Newer docker archives are OCI archives, too, but lack what
// is of other platforms.
func (s Store) read(archive string) (images []v1.Descriptor, err error) {
	open := func() (io.ReadCloser, error) { return decompressed(archive) }
	listed, notDocker := tarball.LoadManifest(open)
	if notDocker != nil {
		images, err = s.ociImages(archive)
		if err != nil {
			err = fmt.Errorf("no docker archive: %w; no OCI archive: %w", notDocker, err)
		}
	} else {
		images, err = s.dockerImages(open, listed)
	}
	if err == nil && len(images) == 0 {
		err = errors.New("it holds no image")
	}
	return images, err
}

// decompressed is the content of a file that may be compressed.
func decompressed(file string) (io.ReadCloser, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	unpacked, err := gzip.NewReader(f)
	if err == nil {
		return struct {
			io.Reader
			io.Closer
		}{unpacked, f}, nil
	}
	_, err = f.Seek(0, io.SeekStart)
	return f, err
}

// dockerImages returns each image of a docker archive under every name.
func (s Store) dockerImages(open tarball.Opener, listed tarball.Manifest) ([]v1.Descriptor, error) {
	var images []v1.Descriptor
	for _, l := range listed {
		image, err := s.dockerImage(open, l.RepoTags)
		if err != nil {
			return nil, err
		}
		if len(l.RepoTags) == 0 {
			l.RepoTags = []string{""}
		}
		for _, tag := range l.RepoTags {
			image.Annotations = map[string]string{annotationName: tag}
			images = append(images, image)
		}
	}
	return images, nil
}

// dockerImage makes the manifest that a docker archive lacks. Layers are uncompressed: the library
// would compress each, twice, to know its digest, which takes longer than all the rest.
func (s Store) dockerImage(open tarball.Opener, tags []string) (v1.Descriptor, error) {
	var tag *name.Tag // nil: the only image
	if len(tags) > 0 {
		first, err := name.NewTag(tags[0])
		if err != nil {
			return v1.Descriptor{}, err
		}
		tag = &first
	}
	image, err := tarball.Image(open, tag)
	if err != nil {
		return v1.Descriptor{}, err
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return v1.Descriptor{}, err
	}
	manifest := v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.DockerManifestSchema2,
		Layers:        []v1.Descriptor{},
	}
	if manifest.Config, err = s.put(bytes.NewReader(config), types.DockerConfigJSON); err != nil {
		return v1.Descriptor{}, err
	}
	layers, err := image.Layers()
	if err != nil {
		return v1.Descriptor{}, err
	}
	for _, layer := range layers {
		content, err := layer.Uncompressed()
		if err != nil {
			return v1.Descriptor{}, err
		}
		blob, err := s.put(content, types.DockerUncompressedLayer)
		if err := errors.Join(err, content.Close()); err != nil {
			return v1.Descriptor{}, err
		}
		manifest.Layers = append(manifest.Layers, blob)
	}
	data, err := json.Marshal(manifest)
	if err != nil {
		return v1.Descriptor{}, err
	}
	return s.put(bytes.NewReader(data), manifest.MediaType)
}

// ociImages are the images that the index.json of an OCI archive names.
func (s Store) ociImages(archive string) ([]v1.Descriptor, error) {
	dir, err := os.MkdirTemp(s.blobs(), ".archive")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	unpack := exec.Command("tar", "--extract", "--force-local", "--file", archive, "--directory", dir)
	if out, err := unpack.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	index, _, err := Store{dir}.index()
	if err != nil {
		return nil, err
	}
	blobs, err := filepath.Glob(filepath.Join(Store{dir}.blobs(), "*"))
	if err != nil {
		return nil, err
	}
	for _, blob := range blobs {
		f, err := os.Open(blob)
		if err != nil {
			return nil, err
		}
		_, err = s.put(f, "")
		f.Close()
		if err != nil {
			return nil, err
		}
	}
	for i, image := range index.Manifests {
		if err := s.walk(image, func(v1.Descriptor, []byte) error { return nil }); err != nil {
			return nil, err
		}
		given := image.Annotations[annotationName]
		if tag := image.Annotations[annotationTag]; given == "" && strings.ContainsAny(tag, ":/") {
			given = tag
		}
		index.Manifests[i].Annotations = map[string]string{annotationName: given}
	}
	return index.Manifests, nil
}
