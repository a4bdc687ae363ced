package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// hash identifies the input of a part: its command, its sources, the compiler and the architecture.
func (p part) hash(source string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %s %s %s\n%q\n%q\n", p.name, p.version, runtime.Version(), runtime.GOARCH,
		flags, p.command, p.links)
	for _, s := range p.sources {
		if err := hashTree(h, source, s); err != nil {
			return "", fmt.Errorf("the sources of %s: %w", p.name, err)
		}
	}
	return short(h), nil
}

// hashTree adds names and content of a file, or of all files in a folder but tests and their data.
func hashTree(h hash.Hash, root, name string) error {
	return filepath.WalkDir(filepath.Join(root, name),
		func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() {
				if entry.Name() == "testdata" {
					return filepath.SkipDir
				}
				return nil
			}
			if strings.HasSuffix(path, "_test.go") {
				return nil
			}
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "%s %d\n", filepath.ToSlash(relative), len(data))
			h.Write(data)
			return nil
		})
}

// setHash names the whole set of binaries by the hashes of its parts.
func setHash(partHashes []string) string {
	h := sha256.New()
	for _, p := range partHashes {
		fmt.Fprintln(h, p)
	}
	return short(h)
}

func short(h hash.Hash) string {
	return hex.EncodeToString(h.Sum(nil))[:16]
}
