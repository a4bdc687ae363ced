package registry

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func TestImagesArePulledByTheNamesOfTheirArchives(t *testing.T) {
	l := newLab(t)
	redis, operator := plain(t, "redis"), compressed(t)
	names := l.add("", dockerArchive(t, redis, "redis:7", "docker.io/bitnami/redis:8.2"),
		dockerArchive(t, operator, "ghcr.io/redquake/redquake:dev"))
	slices.Sort(names)
	if want := []string{
		"docker.io/bitnami/redis:8.2", "docker.io/library/redis:7",
		"ghcr.io/redquake/redquake:dev",
	}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
	l.leadsTo("docker.io/library/redis:7", redis)
	l.leadsTo("docker.io/bitnami/redis:8.2", redis)
	l.leadsTo("ghcr.io/redquake/redquake:dev", operator)

	got, err := l.pull("docker.io/library/redis:7")
	if err != nil {
		t.Fatal(err)
	}
	ref := "docker.io/library/redis@" + digest(t, got)
	if _, err := l.pull(ref); err != nil {
		t.Errorf("by its digest: %v", err)
	}
	if layers, err := got.Layers(); err != nil || len(layers) != 1 {
		t.Errorf("layers %v, %v", layers, err)
	} else if mt, _ := layers[0].MediaType(); mt != types.DockerUncompressedLayer {
		t.Errorf("the layer is of type %s", mt)
	}
}

func TestAnIndexIsPulledForAPlatform(t *testing.T) {
	l := newLab(t)
	index, err := random.Index(1000, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	names := l.add("", ociArchive(t, index, map[string]string{annotationTag: "quay.io/team/tool:1"}))
	if want := []string{"quay.io/team/tool:1"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
	got, err := remote.Index(l.reference("quay.io/team/tool:1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(got); err != nil {
		t.Error(err)
	}
	l.add("", dockerArchive(t, plain(t, "x"), "x:1")) // what is referenced stays
	if err := validate.Index(got); err != nil {
		t.Error(err)
	}
	if _, err := l.Add("", ociArchive(t, index, map[string]string{annotationTag: "1"})); err == nil ||
		!strings.Contains(err.Error(), "--as") {
		t.Errorf("an archive that states a tag alone: %v", err)
	}
	l.leadsToIndex("docker.io/library/tool:2", l.add("tool:2", ociArchive(t, index, nil)))
}

// TestAnArchiveOfDockerLacksOtherPlatforms has an index.json, too, which leads to an image that is not there.
func TestAnArchiveOfDockerLacksOtherPlatforms(t *testing.T) {
	l, image := newLab(t), plain(t, "x")
	index, err := random.Index(1000, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	unpack(t, dir, ociArchive(t, index, map[string]string{annotationName: "docker.io/library/x:1"}))
	manifest, err := index.IndexManifest()
	if err == nil {
		err = os.Remove(filepath.Join(dir, "blobs", "sha256", manifest.Manifests[1].Digest.Hex))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Add("", packed(t, dir)); err == nil ||
		!strings.Contains(err.Error(), manifest.Manifests[1].Digest.Hex) {
		t.Errorf("without a manifest.json: %v", err)
	}
	unpack(t, dir, dockerArchive(t, image, "x:1"))
	l.add("", packed(t, dir))
	l.leadsTo("docker.io/library/x:1", image)
}

func TestCompressedArchive(t *testing.T) {
	l, image := newLab(t), plain(t, "x")
	data, err := os.ReadFile(dockerArchive(t, image, "x:1"))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l.add("", write(t, "image.tar.gz", b.Bytes()))
	l.leadsTo("docker.io/library/x:1", image)
}

// TestATagMoves also counts blobs: what is replaced stays for those who pull it, until the next command.
func TestATagMoves(t *testing.T) {
	l := newLab(t)
	var archives []string
	var images []v1.Image
	for _, content := range []string{"one", "two", "three"} {
		images = append(images, plain(t, content))
		archives = append(archives, dockerArchive(t, images[len(images)-1], "ghcr.io/redquake/redquake:dev"))
	}
	const full = "ghcr.io/redquake/redquake:dev"
	l.add("", archives[0])
	l.leadsTo(full, images[0])
	first, err := l.pull(full)
	if err != nil {
		t.Fatal(err)
	}
	l.add("", archives[1])
	l.leadsTo(full, images[1])
	if err := whole(first); err != nil {
		t.Errorf("the image that was replaced can no longer be pulled: %v", err)
	}
	l.add("", archives[2])
	l.leadsTo(full, images[2])
	if blobs, _ := os.ReadDir(l.blobs()); len(blobs) != 6 { // manifest, config and layer of two images
		t.Errorf("%d blobs, want those of the image and of the one before", len(blobs))
	}
	// The next process of the registry, or of the lab, finds all of it.
	again := Store{Dir: l.Dir}
	server := httptest.NewServer(again.Handler())
	defer server.Close()
	l.host = strings.TrimPrefix(server.URL, "http://")
	l.leadsTo(full, images[2])
}

func TestAnInterruptedLoadLeavesNothing(t *testing.T) {
	l, image := newLab(t), plain(t, "x")
	archive := dockerArchive(t, image, "x:1")
	data, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{0, 300, 700, 1400, len(data) / 2, len(data) - 1500} {
		if names, err := l.Add("", write(t, "cut.tar", data[:cut])); err == nil {
			t.Errorf("the first %d of %d bytes are read as %q", cut, len(data), names)
		}
	}
	if err := os.WriteFile(filepath.Join(l.blobs(), ".123"), []byte("half a blob"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.pull("docker.io/library/x:1"); err == nil {
		t.Error("half an image can be pulled")
	}
	l.add("", archive)
	l.leadsTo("docker.io/library/x:1", image)
	l.add("", archive)
	if blobs, _ := os.ReadDir(l.blobs()); len(blobs) != 3 {
		t.Errorf("%d blobs are left, want manifest, config and layer", len(blobs))
	}
}

func TestWhatIsNotThere(t *testing.T) {
	l := newLab(t)
	image := plain(t, "x")
	for range 2 { // also while nothing was loaded
		for _, full := range []string{
			"docker.io/library/x:2", "ghcr.io/library/x:1",
			"docker.io/library/x@sha256:" + strings.Repeat("0", 64),
		} {
			_, err := l.pull(full)
			var answer *transport.Error
			if !errors.As(err, &answer) || answer.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %v, want that it is not found", full, err)
			}
		}
		l.add("", dockerArchive(t, image, "x:1"))
	}
	for path, status := range map[string]int{
		"/v2/":              http.StatusOK,
		"/v2/?ns=docker.io": http.StatusOK,
		"/":                 http.StatusNotFound,
		"/v2/library/x/blobs/sha256:..%2f..%2findex.json": http.StatusNotFound,
		"/v2/library/x/blobs/7":                           http.StatusBadRequest,
	} {
		response, err := http.Get("http://" + l.host + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != status {
			t.Errorf("GET %s: %s, want %d", path, response.Status, status)
		}
	}
}

func TestItIsReadOnly(t *testing.T) {
	l := newLab(t)
	err := remote.Write(l.reference("library/x:1").(name.Tag), plain(t, "x"))
	var answer *transport.Error
	if !errors.As(err, &answer) || answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a push over the network: %v, want that the method is not allowed", err)
	}
}

func TestOneImageUnderAnotherName(t *testing.T) {
	l, redis, other := newLab(t), plain(t, "redis"), plain(t, "other")
	archive := dockerArchive(t, redis, "redis:8", "redis:8.2.1")
	if names := l.add("registry.example.com/charts/redis:latest",
		archive); !slices.Equal(names, []string{"registry.example.com/charts/redis:latest"}) {
		t.Errorf("names %q", names)
	}
	l.leadsTo("registry.example.com/charts/redis:latest", redis)
	if _, err := l.pull("docker.io/library/redis:8"); err == nil {
		t.Error("it has its own name, too")
	}
	if _, err := l.Add("x:1", archive, dockerArchive(t, other, "other:1")); err == nil ||
		!strings.Contains(err.Error(), "several images") {
		t.Errorf("one name for two images: %v", err)
	}
	if _, err := l.Add("Not A Name", archive); err == nil || !strings.Contains(err.Error(), "Not A Name") {
		t.Errorf("a name that is none: %v", err)
	}
}

// TestLoadsAndPullsAtTheSameTime moves tags from several commands while others pull: each of those finds a whole image.
func TestLoadsAndPullsAtTheSameTime(t *testing.T) {
	l := newLab(t)
	archives := []string{
		dockerArchive(t, plain(t, "a"), "a:1"), dockerArchive(t, plain(t, "b"), "b:1"),
		dockerArchive(t, compressed(t), "c:1"),
	}
	l.add("", archives...)
	var loads, pulls sync.WaitGroup
	loaded := make(chan struct{})
	for range 3 {
		pulls.Go(func() {
			for {
				for _, full := range []string{"docker.io/library/a:1", "docker.io/library/b:1", "docker.io/library/c:1"} {
					image, err := remote.Image(l.reference(full))
					if err == nil {
						err = whole(image)
					}
					if err != nil {
						t.Errorf("%s: %v", full, err)
					}
				}
				select {
				case <-loaded:
					return
				default:
				}
			}
		})
	}
	for _, archive := range archives {
		loads.Go(func() {
			for range 10 {
				if _, err := (Store{Dir: l.Dir}).Add("", archive); err != nil {
					t.Error(err)
				}
			}
		})
	}
	loads.Wait()
	close(loaded)
	pulls.Wait()
}
