// Package registry keeps images in an OCI image layout and serves them to the nodes, read-only. All
// of its state is in the layout, so that images survive the process, and a command adds them
// without it.
package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sys/unix"

	"github.com/redquake/redquake/hack/lab/internal/files"
)

// Store is a folder with an OCI image layout.
type Store struct{ Dir string }

// annotationName is where an image layout has the whole name of an image, by containerd's
// convention; annotationTag is OCI's, often the tag alone.
const (
	annotationName = "io.containerd.image.name"
	annotationTag  = "org.opencontainers.image.ref.name"
)

// Add puts the images of docker or OCI archives into the store and returns their names. as, unless
// empty, is the name of their only image, whatever the archives call it. A name that leads to
// another image leads to the new one from now on.
func (s Store) Add(as string, archives ...string) ([]string, error) {
	unlock, err := s.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	index, _, err := s.index()
	if err != nil {
		return nil, err
	}
	// Before the index changes: what this call replaces stays until the next one, as a node may be
	// pulling it.
	if err := s.removeUnreferenced(index); err != nil {
		return nil, err
	}
	var added []v1.Descriptor
	for _, a := range archives {
		images, err := s.read(a)
		if err != nil {
			return nil, fmt.Errorf("image archive %s: %w", a, err)
		}
		added = append(added, images...)
	}
	if as != "" {
		if added, err = rename(added, as); err != nil {
			return nil, err
		}
	}
	names := make([]string, len(added))
	for i := range added {
		if names[i], err = setName(&added[i]); err != nil {
			return nil, err
		}
		index.Manifests = append(slices.DeleteFunc(index.Manifests, func(d v1.Descriptor) bool {
			return d.Annotations[annotationName] == names[i]
		}), added[i])
	}
	return names, s.writeIndex(index)
}

// rename is the only image of those, under another name.
func rename(images []v1.Descriptor, as string) ([]v1.Descriptor, error) {
	for _, i := range images {
		if i.Digest != images[0].Digest {
			return nil, fmt.Errorf("there are several images, which cannot all be named %s", as)
		}
	}
	only := images[0]
	only.Annotations = map[string]string{annotationName: as}
	return []v1.Descriptor{only}, nil
}

// setName writes the name of an image in full, as containerd does: docker.io/library/redis:7 for
// redis:7.
func setName(image *v1.Descriptor) (string, error) {
	given := image.Annotations[annotationName]
	if given == "" {
		return "", errors.New(
			"an image of the archives has no name; give it one: hack/lab/lab push --as NAME FILE")
	}
	ref, err := name.NewTag(given)
	if err != nil {
		return "", fmt.Errorf("image name %q: %w", given, err)
	}
	host := ref.RegistryStr()
	if host == name.DefaultRegistry {
		host = "docker.io"
	}
	full := host + "/" + ref.RepositoryStr() + ":" + ref.TagStr()
	image.Annotations = map[string]string{annotationName: full, annotationTag: ref.TagStr()}
	return full, nil
}

// lock waits until no other process adds images. The kernel releases it when this process ends.
func (s Store) lock() (unlock func(), err error) {
	if err := os.MkdirAll(s.blobs(), 0o755); err != nil {
		return nil, err
	}
	dir, err := os.Open(s.Dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		dir.Close()
		return nil, fmt.Errorf("locking %s: %w", s.Dir, err)
	}
	return func() { dir.Close() }, nil
}

// index is index.json, also as it is written.
func (s Store) index() (*v1.IndexManifest, []byte, error) {
	data, err := os.ReadFile(s.indexFile())
	if errors.Is(err, fs.ErrNotExist) {
		return &v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(data))
	if err != nil {
		err = fmt.Errorf("%s: %w", s.indexFile(), err)
	}
	return index, data, err
}

func (s Store) writeIndex(index *v1.IndexManifest) error {
	data, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return err
	}
	version := []byte(`{"imageLayoutVersion":"1.0.0"}`)
	if err := files.WriteAtomic(filepath.Join(s.Dir, "oci-layout"), version, 0o644); err != nil {
		return err
	}
	return files.WriteAtomic(s.indexFile(), data, 0o644)
}

// put stores a blob under its digest. It appears there whole.
func (s Store) put(content io.Reader, mediaType types.MediaType) (v1.Descriptor, error) {
	tmp, err := os.CreateTemp(s.blobs(), ".*")
	if err != nil {
		return v1.Descriptor{}, err
	}
	defer os.Remove(tmp.Name())
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(tmp, hash), content)
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if err := errors.Join(err, tmp.Close()); err != nil {
		return v1.Descriptor{}, err
	}
	digest := v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(hash.Sum(nil))}
	return v1.Descriptor{MediaType: mediaType, Digest: digest, Size: size}, os.Rename(tmp.Name(),
		s.blob(digest))
}

// walk gives f each manifest of which an image consists, those of an index before it.
func (s Store) walk(image v1.Descriptor, f func(d v1.Descriptor, manifest []byte) error) error {
	data, err := os.ReadFile(s.blob(image.Digest))
	if err != nil {
		return err
	}
	if image.MediaType.IsIndex() {
		index, err := v1.ParseIndexManifest(bytes.NewReader(data))
		if err != nil {
			return err
		}
		for _, d := range index.Manifests {
			if err := s.walk(d, f); err != nil {
				return err
			}
		}
	}
	return f(image, data)
}

// removeUnreferenced deletes the blobs that no image of the index consists of, and what an
// interrupted command left.
func (s Store) removeUnreferenced(index *v1.IndexManifest) error {
	keep := map[string]bool{}
	for _, image := range index.Manifests {
		err := s.walk(image, func(d v1.Descriptor, data []byte) error {
			keep[d.Digest.Hex] = true
			if !d.MediaType.IsImage() {
				return nil
			}
			manifest, err := v1.ParseManifest(bytes.NewReader(data))
			if err != nil {
				return err
			}
			for _, part := range append(manifest.Layers, manifest.Config) {
				keep[part.Digest.Hex] = true
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	entries, err := os.ReadDir(s.blobs())
	for _, e := range entries {
		if !keep[e.Name()] {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.blobs(), e.Name())))
		}
	}
	return err
}

func (s Store) blobs() string {
	return filepath.Join(s.Dir, "blobs", "sha256")
}

func (s Store) blob(digest v1.Hash) string {
	return filepath.Join(s.Dir, "blobs", digest.Algorithm, digest.Hex)
}

func (s Store) indexFile() string {
	return filepath.Join(s.Dir, "index.json")
}
