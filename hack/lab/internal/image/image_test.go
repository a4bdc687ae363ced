package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestLayer(t *testing.T) {
	source := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte("code"), 0o600); err != nil {
		t.Fatal(err)
	}
	data, err := Files{
		"/usr/bin/program": {Source: source},
		"/etc/passwd":      {Data: []byte("root")},
		"/bin/sh":          {Link: "/bin/busybox"},
		"/tmp":             {Dir: true, Mode: 0o1777},
		"/data":            {Dir: true, Owner: 999},
	}.layer()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(epoch) {
			t.Errorf("%s has the time %v: the image would differ from build to build", h.Name, h.ModTime)
		}
		got = append(got, h.FileInfo().Mode().String()+" "+h.Name+h.Linkname)
	}
	want := []string{
		"drwxr-xr-x bin", "Lrwxrwxrwx bin/sh/bin/busybox", "drwxr-xr-x data", "drwxr-xr-x etc", "-rw-r--r-- etc/passwd",
		"dtrwxrwxrwx tmp", "drwxr-xr-x usr", "drwxr-xr-x usr/bin", "-rwxr-xr-x usr/bin/program",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestWriteIsDeterministicAndReuses(t *testing.T) {
	dir := t.TempDir()
	spec := Spec{
		Tags:   []string{"docker.io/library/redis:7", "docker.io/library/redis:7.0.15"},
		Files:  Files{"/a": {Data: []byte("a")}},
		Config: v1.Config{User: "999", Cmd: []string{"redis-server"}},
	}
	one, two := filepath.Join(dir, "one.tar"), filepath.Join(dir, "two.tar")
	for _, path := range []string{one, two} {
		if reused, err := spec.Write(path); err != nil || reused {
			t.Fatalf("reused %v, %v", reused, err)
		}
	}
	// By digest, not by the archives' bytes: the library lists an image's names in the order of a map.
	if first, second := configOf(t, one, spec), configOf(t, two, spec); first != second {
		t.Errorf("two builds of the same files differ: %s, %s", first, second)
	}
	if reused, err := spec.Write(one); err != nil || !reused {
		t.Errorf("the same image again: reused %v, %v", reused, err)
	}
	for name, change := range map[string]func(*Spec){
		"content": func(s *Spec) { s.Files = Files{"/a": {Data: []byte("b")}} },
		"config":  func(s *Spec) { s.Config.User = "0" },
		"name":    func(s *Spec) { s.Tags = s.Tags[:1] },
	} {
		changed := spec
		change(&changed)
		if reused, err := changed.Write(one); err != nil || reused {
			t.Errorf("another %s: reused %v, %v", name, reused, err)
		}
	}
	os.WriteFile(one, []byte("not an archive"), 0o644)
	if reused, err := spec.Write(one); err != nil || reused {
		t.Errorf("a damaged archive: reused %v, %v", reused, err)
	}
	img, err := tarball.ImageFromPath(one, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil || config.Config.User != "999" || config.OS != "linux" || len(config.RootFS.DiffIDs) != 1 {
		t.Errorf("config %+v, %v", config, err)
	}
}

// configOf is the digest of the config in an archive; it names all content by digest. Every name must lead to it.
func configOf(t *testing.T, path string, s Spec) string {
	t.Helper()
	var digests []string
	for _, tag := range s.Tags {
		ref, err := name.NewTag(tag)
		if err != nil {
			t.Fatal(err)
		}
		img, err := tarball.ImageFromPath(path, &ref)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := img.ConfigName()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest.String())
	}
	if digests = slices.Compact(digests); len(digests) != 1 {
		t.Fatalf("the names of one image lead to %v", digests)
	}
	return digests[0]
}

func TestWriteNamesWhatIsMissing(t *testing.T) {
	spec := Spec{Tags: []string{"x:1"}, Files: Files{"/manager": {Source: "/no/such/file"}}}
	if _, err := spec.Write(filepath.Join(t.TempDir(), "x.tar")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that the file does not exist", err)
	}
}

func TestParseList(t *testing.T) {
	const out = "\tlinux-vdso.so.1 (0x00007f)\n\tlibm.so.6 => /t/usr/lib/libm.so.6 (0x00007f)\n\t/lib64/ld.so.2 => " +
		"/t/usr/lib/ld.so.2 (0x00007f)\n"
	got, err := parseList(out, "/t")
	want := Files{"/usr/lib/libm.so.6": {Source: "/t/usr/lib/libm.so.6"}, "/lib64/ld.so.2": {Source: "/t/usr/lib/ld.so.2"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"libm.so.6 => /usr/lib/libm.so.6 (0x00007f)", "libm.so.6 => not found"} {
		if got, err := parseList(bad, "/t"); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

func TestNewest(t *testing.T) {
	dir := t.TempDir()
	var trees []string
	for i, name := range []string{"valkey-9.0.1-1", "valkey-9.1.2-1", "valkey-9.odd"} {
		path := filepath.Join(dir, name)
		at := time.Unix(int64(1000+i), 0)
		if err := errors.Join(os.Mkdir(path, 0o755), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
		trees = append(trees, path)
	}
	if tree, version := newest(trees); tree != trees[1] || version != "9.1.2" {
		t.Errorf("the newest is %s, version %s", tree, version)
	}
	if tree, _ := newest(nil); tree != "" {
		t.Errorf("the newest of none is %s", tree)
	}
}

func TestParseLDD(t *testing.T) {
	const out = "\tlinux-vdso.so.1 (0x00007f)\n\tlibm.so.6 => /lib/libm.so.6 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n"
	if got := parseLDD(out); !slices.Equal(got, []string{"/lib/libm.so.6", "/lib64/ld-linux-x86-64.so.2"}) {
		t.Errorf("got %v", got)
	}
}
