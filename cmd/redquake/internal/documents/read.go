// Package documents reads files with YAML or JSON documents, up to a size, and cuts them into
// objects in JSON.
package documents

import (
	"fmt"
	"io"
	"os"
)

// MaxBytes bounds the size of a file: the longest record has some 10 MiB.
const MaxBytes = 256 << 20

// Read reads a file of at most MaxBytes. A missing one is an os.ErrNotExist.
func Read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return ReadBounded(file, path, MaxBytes)
}

// ReadBounded reads all of a file, which errors call name. More than limit bytes are an error: it
// is too long to be a result.
func ReadBounded(in io.Reader, name string, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("%s is longer than %d MiB", name, limit>>20)
	}
	return text, nil
}

// ReadArgument reads the file of at most MaxBytes that an argument names; - is stdin.
func ReadArgument(of string, stdin io.Reader) ([]byte, error) {
	if of == "-" {
		return ReadBounded(stdin, "standard input", MaxBytes)
	}
	return Read(of)
}
