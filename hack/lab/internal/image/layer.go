// Package image builds container images out of files, without a container engine or a registry. The
// same files give the same image, to the byte.
package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// File is one entry of an image. Exactly one of Source, Data, Link and Dir is set.
type File struct {
	Source string      // a file of this machine, links followed
	Data   []byte      // literal content
	Link   string      // target of a symbolic link
	Dir    bool        // a folder
	Mode   os.FileMode // default: 0755 for Source and Dir, 0644 for Data
	Owner  int         // uid and gid
	// the extended attribute security.capability
	Capability string
}

// Files maps absolute paths in the image to entries. Parents are added as needed.
type Files map[string]File

// epoch is the time of every file: when it was built must not change an image.
var epoch = time.Unix(0, 0).UTC()

// layer is the uncompressed tar archive of the files, parents before their content, else sorted.
func (f Files) layer() ([]byte, error) {
	all := f.withParents()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		header, data, err := all[name].entry()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		header.Name = strings.TrimPrefix(name, "/")
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if _, err := w.Write(data); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// withParents adds the folders above every file, and writes every path the same way.
func (f Files) withParents() Files {
	all := Files{}
	for name, file := range f {
		name = path.Clean("/" + name)
		all[name] = file
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			if _, there := f[dir]; !there {
				all[dir] = File{Dir: true}
			}
		}
	}
	return all
}

// entry is the tar header of the file, without a name, and its content.
func (f File) entry() (*tar.Header, []byte, error) {
	header := &tar.Header{
		ModTime: epoch,
		Uid:     f.Owner,
		Gid:     f.Owner,
		Format:  tar.FormatPAX,
	}
	data, mode := f.Data, os.FileMode(0o644)
	switch {
	case f.Dir:
		header.Typeflag, mode = tar.TypeDir, 0o755
	case f.Link != "":
		header.Typeflag, header.Linkname, mode = tar.TypeSymlink, f.Link, 0o777
	default:
		header.Typeflag = tar.TypeReg
		if f.Source != "" {
			var err error
			if data, err = os.ReadFile(f.Source); err != nil {
				return nil, nil, err
			}
			mode = 0o755
		}
		header.Size = int64(len(data))
	}
	if f.Mode != 0 {
		mode = f.Mode
	}
	if f.Capability != "" { // as containerd and Docker read it
		header.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": f.Capability}
	}
	header.Mode = int64(mode)
	return header, data, nil
}
