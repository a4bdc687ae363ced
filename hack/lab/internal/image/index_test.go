package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/redquake/redquake/hack/lab/internal/registry"
)

const tag = "ghcr.io/redquake/redquake:v1.2.3"

// program is the path of a static program for a machine, which says no more than that.
func program(t *testing.T, name string, machine elf.Machine) string {
	t.Helper()
	var b bytes.Buffer
	header := elf.Header64{
		Ident:   [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:    uint16(elf.ET_EXEC),
		Machine: uint16(machine),
		Version: uint32(elf.EV_CURRENT),
		Ehsize:  uint16(binary.Size(elf.Header64{})),
	}
	if err := binary.Write(&b, binary.LittleEndian, header); err != nil {
		t.Fatal(err)
	}
	b.WriteString(name)
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b.Bytes(), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// release is the project's image for amd64 and arm64.
func release(t *testing.T) []Spec {
	t.Helper()
	of := Build{Version: "v1.2.3", Revision: "0123abcd", Created: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	var specs []Spec
	for _, machine := range []elf.Machine{elf.EM_X86_64, elf.EM_AARCH64} {
		spec, err := Redquake(Programs{
			program(t, "manager", machine), program(t, "redquake", machine), program(t, "netfault", machine),
		}, tag, of)
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, spec)
	}
	return specs
}

// written is the only index in an OCI archive.
func written(t *testing.T, archive string) v1.ImageIndex {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["io.containerd.image.name"] != tag {
		t.Fatalf("the layout has %+v, %v", manifest, err)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func TestAnIndexHoldsAnImageForEachArchitecture(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "redquake.tar")
	digest, err := WriteIndex(archive, release(t)...)
	if err != nil {
		t.Fatal(err)
	}
	index := written(t, archive)
	if got, err := index.Digest(); err != nil || got != digest {
		t.Errorf("the archive has %s, %v, and WriteIndex says %s", got, err, digest)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || manifest.MediaType != types.OCIImageIndex || len(manifest.Manifests) != 2 {
		t.Fatalf("the index is %+v, %v", manifest, err)
	}
	if manifest.Annotations["org.opencontainers.image.version"] != "v1.2.3" {
		t.Errorf("the index has the annotations %v", manifest.Annotations)
	}
	for i, want := range []struct {
		architecture string
		machine      elf.Machine
	}{{"amd64", elf.EM_X86_64}, {"arm64", elf.EM_AARCH64}} {
		listed := manifest.Manifests[i]
		if p := listed.Platform; p.OS != "linux" || p.Architecture != want.architecture || listed.ArtifactType != "" {
			t.Errorf("image %d is listed as %+v", i, listed)
		}
		img, err := index.Image(listed.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		labels := config.Config.Labels
		if config.Architecture != want.architecture || config.Config.User != "65532:65532" ||
			!slices.Equal(config.Config.Entrypoint, []string{"/manager"}) ||
			labels["org.opencontainers.image.revision"] != "0123abcd" ||
			labels["org.opencontainers.image.created"] != "2026-11-29T12:00:00Z" || config.Created.Year() != 2026 {
			t.Errorf("the image for %s has %+v", want.architecture, config)
		}
		for _, name := range []string{"manager", "redquake", "netfault"} {
			content := fileOf(t, img, name)
			f, err := elf.NewFile(bytes.NewReader(content))
			if err != nil || f.Machine != want.machine || !strings.HasSuffix(string(content), name) {
				t.Errorf("/%s of the image for %s is %q, %v", name, want.architecture, content, err)
			}
		}
	}
}

// fileOf is a file in the only layer of an image, which is compressed.
func fileOf(t *testing.T, img v1.Image, name string) []byte {
	t.Helper()
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("there are the layers %v, %v", layers, err)
	}
	if kind, err := layers[0].MediaType(); err != nil || kind != types.OCILayer {
		t.Errorf("the layer is of the type %s, %v", kind, err)
	}
	compressed, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer compressed.Close()
	plain, err := gzip.NewReader(compressed)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if h.Name != name {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
}

func TestAnIndexIsTheSameToTheByte(t *testing.T) {
	specs, dir := release(t), t.TempDir()
	var archives [2][]byte
	for i := range archives {
		path := filepath.Join(dir, "redquake.tar")
		if _, err := WriteIndex(path, specs...); err != nil {
			t.Fatal(err)
		}
		var err error
		if archives[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if len(archives[0]) == 0 || !bytes.Equal(archives[0], archives[1]) {
		t.Errorf("two builds of the same files differ: %d and %d bytes", len(archives[0]), len(archives[1]))
	}
}

func TestTheLabTakesAnIndex(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "redquake.tar")
	if _, err := WriteIndex(archive, release(t)...); err != nil {
		t.Fatal(err)
	}
	names, err := registry.Store{Dir: t.TempDir()}.Add("", archive)
	if err != nil || !slices.Equal(names, []string{tag}) {
		t.Errorf("loaded %v, %v", names, err)
	}
}

func TestAnIndexIsOfDifferentArchitectures(t *testing.T) {
	specs := release(t)
	renamed := specs[1]
	renamed.Tags = []string{"x:1"}
	for name, of := range map[string][]Spec{
		"is twice for amd64": {specs[0], specs[0]},
		"has one name":       {specs[0], renamed},
		"at least one":       nil,
	} {
		path := filepath.Join(t.TempDir(), "x.tar")
		if _, err := WriteIndex(path, of...); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: there is an archive: %v", name, err)
		}
	}
}

func TestProgramsOfAnImageAreForOneArchitecture(t *testing.T) {
	amd64, arm64 := program(t, "manager", elf.EM_X86_64), program(t, "redquake", elf.EM_AARCH64)
	if _, err := Redquake(Programs{amd64, arm64, amd64}, tag, Build{}); err == nil || !strings.Contains(err.Error(), "is for amd64, and") {
		t.Errorf("an image of two architectures: %v", err)
	}
	other := program(t, "redquake", elf.EM_RISCV)
	if _, err := Redquake(Programs{other, other, other}, tag, Build{}); err == nil || !strings.Contains(err.Error(), "EM_RISCV") {
		t.Errorf("an image of an unknown architecture: %v", err)
	}
}

// TestTheDockerfileMakesTheSame holds that who builds with Docker gets the image of a release but for its base.
func TestTheDockerfileMakesTheSame(t *testing.T) {
	text, err := os.ReadFile("../../../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{}
	for _, m := range regexp.MustCompile(`(org\.opencontainers\.image\.\w+)="([^"]*)"`).FindAllStringSubmatch(string(text), -1) {
		labels[m[1]] = m[2]
	}
	want := release(t)[0].Config
	maps.Copy(want.Labels, map[string]string{
		"org.opencontainers.image.version":  "${VERSION}",
		"org.opencontainers.image.revision": "${REVISION}",
		"org.opencontainers.image.created":  "${CREATED}",
	})
	if !maps.Equal(labels, want.Labels) {
		t.Errorf("the Dockerfile has the labels\n%v, want\n%v", labels, want.Labels)
	}
	lines := []string{"USER " + want.User, `ENTRYPOINT ["` + want.Entrypoint[0] + `"]`}
	for path, file := range release(t)[0].Files {
		if file.Source != "" && filepath.Dir(path) == "/" {
			lines = append(lines, "COPY --from=build /out"+path+" "+path)
		}
		if file.Capability != "" && !strings.Contains(string(text), "setcap cap_net_admin+ep /out"+path+"\n") {
			t.Errorf("the Dockerfile gives %s no capability", path)
		}
	}
	for _, line := range lines {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("the Dockerfile has no %s", line)
		}
	}
}
