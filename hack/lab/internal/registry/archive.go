package registry

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// content is what an archive holds: its files, stored as blobs, and one of two lists of images.
type content struct {
	blobs  map[string]v1.Descriptor
	links  map[string]string
	docker tarball.Manifest  // manifest.json of a docker archive
	oci    *v1.IndexManifest // index.json of an OCI archive; newer docker archives have both
}

// read stores the images of an archive, in one pass and as they are: the library's reader would
// compress each layer, twice, to know its digest, which takes longer than all the rest.
func (s Store) read(archive string) ([]v1.Descriptor, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	unpacked, err := decompress(f)
	if err != nil {
		return nil, err
	}
	c := content{blobs: map[string]v1.Descriptor{}, links: map[string]string{}}
	for r := tar.NewReader(unpacked); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = s.take(&c, header, r)
		}
		if err != nil {
			return nil, err
		}
	}
	if c.oci != nil {
		return s.ociImages(c)
	}
	return s.dockerImages(c)
}

// decompress is the content of a file that may be compressed.
func decompress(f io.Reader) (io.Reader, error) {
	r := bufio.NewReaderSize(f, 1<<20)
	if isGzip(r) {
		return gzip.NewReader(r)
	}
	return r, nil
}

func isGzip(r *bufio.Reader) bool {
	start, _ := r.Peek(2)
	return bytes.Equal(start, []byte{0x1f, 0x8b})
}

// take keeps one file of an archive.
func (s Store) take(c *content, header *tar.Header, r io.Reader) error {
	file := path.Clean(header.Name)
	switch header.Typeflag {
	case tar.TypeSymlink: // a layer that several images have
		c.links[file] = path.Join(path.Dir(file), header.Linkname)
		return nil
	case tar.TypeLink:
		c.links[file] = path.Clean(header.Linkname)
		return nil
	case tar.TypeReg:
	default:
		return nil
	}
	switch file {
	case "manifest.json":
		return json.NewDecoder(r).Decode(&c.docker)
	case "index.json":
		return json.NewDecoder(r).Decode(&c.oci)
	}
	buffered := bufio.NewReaderSize(r, 1<<20)
	layer := types.DockerUncompressedLayer
	if isGzip(buffered) {
		layer = types.DockerLayer
	}
	blob, err := s.put(buffered)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	blob.MediaType = layer // if it is one
	c.blobs[file] = blob
	return nil
}

// ociImages are the images that an OCI archive names.
func (s Store) ociImages(c content) ([]v1.Descriptor, error) {
	var images []v1.Descriptor
	for _, image := range c.oci.Manifests {
		if _, _, err := s.manifest(image.Digest); err != nil {
			return nil, fmt.Errorf("its manifest %s is missing: %w", image.Digest, err)
		}
		name := image.Annotations[annotationName]
		if tag := image.Annotations[annotationTag]; name == "" && strings.ContainsAny(tag, ":/") {
			name = tag
		}
		image.Annotations = map[string]string{annotationName: name}
		images = append(images, image)
	}
	if len(images) == 0 {
		return nil, errors.New("it holds no image")
	}
	return images, nil
}

// dockerImages makes the manifests that a docker archive lacks, and returns each under every name.
func (s Store) dockerImages(c content) ([]v1.Descriptor, error) {
	var images []v1.Descriptor
	for _, listed := range c.docker {
		image, err := s.dockerImage(c, listed)
		if err != nil {
			return nil, err
		}
		tags := listed.RepoTags
		if len(tags) == 0 {
			tags = []string{""}
		}
		for _, tag := range tags {
			image.Annotations = map[string]string{annotationName: tag}
			images = append(images, image)
		}
	}
	if len(images) == 0 {
		return nil, errors.New("it is neither a docker nor an OCI archive, or holds no image")
	}
	return images, nil
}

func (s Store) dockerImage(c content, listed tarball.Descriptor) (v1.Descriptor, error) {
	config, err := c.blob(listed.Config)
	if err != nil {
		return v1.Descriptor{}, err
	}
	config.MediaType = types.DockerConfigJSON
	manifest := v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.DockerManifestSchema2,
		Config:        config,
		Layers:        []v1.Descriptor{},
	}
	for _, file := range listed.Layers {
		layer, err := c.blob(file)
		if err != nil {
			return v1.Descriptor{}, err
		}
		manifest.Layers = append(manifest.Layers, layer)
	}
	data, err := json.Marshal(manifest)
	if err != nil {
		return v1.Descriptor{}, err
	}
	image, err := s.put(bytes.NewReader(data))
	image.MediaType = manifest.MediaType
	return image, err
}

// blob is the blob of a file of the archive.
func (c content) blob(file string) (v1.Descriptor, error) {
	file = path.Clean(file)
	if target, linked := c.links[file]; linked {
		file = target
	}
	blob, there := c.blobs[file]
	if !there {
		return blob, fmt.Errorf("its file %s is missing", file)
	}
	return blob, nil
}
