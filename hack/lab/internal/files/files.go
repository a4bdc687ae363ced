// Package files writes files so that a reader, or a killed writer, never leaves half of one.
package files

import (
	"fmt"
	"os"
	"path/filepath"
)

// WriteAtomic writes data to path: path then holds the old content or the new one, never a part.
// The folder of path is created if need be.
func WriteAtomic(path string, data []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return os.Rename(tmp.Name(), path)
}

// LinkAtomic makes path a symbolic link to target, replacing a link that points elsewhere.
func LinkAtomic(target, path string) error {
	if current, err := os.Readlink(path); err == nil && current == target {
		return nil
	}
	tmp := fmt.Sprintf("%s.%d", path, os.Getpid())
	os.Remove(tmp)
	if err := os.Symlink(target, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
