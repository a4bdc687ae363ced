package registry

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// lab is a store and a server of it.
type lab struct {
	Store
	t    *testing.T
	host string
}

func newLab(t *testing.T) lab {
	t.Helper()
	log.SetOutput(io.Discard) // each request
	s := Store{Dir: filepath.Join(t.TempDir(), "images")}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return lab{s, t, strings.TrimPrefix(server.URL, "http://")}
}

// mirrored sends the host of an image's name as containerd does to a mirror.
type mirrored string

func (ns mirrored) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	query := r.URL.Query()
	query.Set("ns", string(ns))
	r.URL.RawQuery = query.Encode()
	return http.DefaultTransport.RoundTrip(r)
}

// pull gets an image by the name HOST/REPOSITORY:TAG, once from the mirror of HOST and once with HOST in the path.
func (l lab) pull(full string) (v1.Image, error) {
	l.t.Helper()
	ns, repository, _ := strings.Cut(full, "/")
	image, err := remote.Image(l.reference(repository), remote.WithTransport(mirrored(ns)))
	direct, directErr := remote.Image(l.reference(full))
	if (err == nil) != (directErr == nil) {
		l.t.Fatalf("%s from the mirror: %v; by its path: %v", full, err, directErr)
	}
	if err == nil && digest(l.t, image) != digest(l.t, direct) {
		l.t.Fatalf("%s is another image from the mirror than by its path", full)
	}
	return image, err
}

func (l lab) reference(repository string) name.Reference {
	l.t.Helper()
	ref, err := name.ParseReference(l.host + "/" + repository)
	if err != nil {
		l.t.Fatal(err)
	}
	return ref
}

// leadsTo checks that a name leads to the image with this config, and that all of it can be pulled.
func (l lab) leadsTo(full string, want v1.Image) {
	l.t.Helper()
	got, err := l.pull(full)
	if err != nil {
		l.t.Fatalf("%s: %v", full, err)
	}
	if err := whole(got); err != nil {
		l.t.Errorf("%s: %v", full, err)
	}
	have, haveErr := got.ConfigName()
	config, err := want.ConfigName()
	if err := errors.Join(err, haveErr); err != nil || have != config {
		l.t.Errorf("%s leads to the config %s (%v), want %s", full, have, err, config)
	}
}

// whole reads all of an image; the library compares each part with its digest.
func whole(image v1.Image) error {
	if _, err := image.RawConfigFile(); err != nil {
		return err
	}
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		content, err := layer.Compressed()
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, content)
		if err := errors.Join(err, content.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (l lab) add(as string, archives ...string) []string {
	l.t.Helper()
	names, err := l.Add(as, archives...)
	if err != nil {
		l.t.Fatal(err)
	}
	return names
}

func digest(t *testing.T, image v1.Image) string {
	t.Helper()
	d, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// compressed is an image with two layers of gzip.
func compressed(t *testing.T) v1.Image {
	t.Helper()
	image, err := random.Image(10_000, 2)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// plain is an image like those of package image, with a layer that is not compressed.
func plain(t *testing.T, content string) v1.Image {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Name: "file", Size: int64(len(content)), Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, static.NewLayer(layer.Bytes(), types.DockerUncompressedLayer))
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// dockerArchive is a docker archive with an image under some names.
func dockerArchive(t *testing.T, image v1.Image, names ...string) string {
	t.Helper()
	images := map[name.Reference]v1.Image{}
	for _, n := range names {
		tag, err := name.NewTag(n)
		if err != nil {
			t.Fatal(err)
		}
		images[tag] = image
	}
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := tarball.MultiRefWriteToFile(path, images); err != nil {
		t.Fatal(err)
	}
	return path
}

// ociArchive is an OCI archive with an index of images for two platforms.
func ociArchive(t *testing.T, index v1.ImageIndex, annotations map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	path, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = path.AppendIndex(index, layout.WithAnnotations(annotations))
	}
	if err != nil {
		t.Fatal(err)
	}
	return packed(t, dir)
}

// packed is an archive of a folder.
func packed(t *testing.T, dir string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close()); err != nil {
		t.Fatal(err)
	}
	return write(t, "oci.tar", b.Bytes())
}

func write(t *testing.T, file string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), file)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func unpack(t *testing.T, dir, archive string) {
	t.Helper()
	if out, err := exec.Command("tar", "-xf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func (l lab) leadsToIndex(full string, names []string) {
	l.t.Helper()
	if !slices.Equal(names, []string{full}) {
		l.t.Errorf("names %q, want %s", names, full)
	}
	if _, err := remote.Index(l.reference(full)); err != nil {
		l.t.Error(err)
	}
}
