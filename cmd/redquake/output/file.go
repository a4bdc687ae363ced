package output

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/report"
)

// File is the file of --record or --report; nil = it was not asked for.
type File struct {
	*os.File
	flag    string
	created bool // it did not exist before, and nothing was written to it
}

// Open opens the file of a flag before the load, so that a path that cannot be written fails at
// once. What it holds stays until it is written. Errors begin with the flag.
func Open(flag, path string) (*File, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	created := err == nil
	if errors.Is(err, os.ErrExist) {
		file, err = os.OpenFile(path, os.O_WRONLY, 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return &File{file, flag, created}, nil
}

// Discard removes the file if it was created, and nothing was written to it: for a load that never
// began.
func (f *File) Discard() {
	if f == nil || !f.created {
		return
	}
	_ = f.Close()
	_ = os.Remove(f.Name()) // what is left is empty, and does no harm
}

// write replaces the contents of the file.
func (f *File) write(content []byte) error {
	f.created = false
	err := f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt(content, 0)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s: %w", f.flag, err)
	}
	return nil
}

// WriteRecord writes the record in the form that the operator stores.
func (f *File) WriteRecord(series *merged.Series) error {
	if f == nil {
		return nil
	}
	packed, err := series.Encode(0)
	if err != nil {
		return fmt.Errorf("%s: %w", f.flag, err)
	}
	return f.write(packed)
}

// WriteReport writes a report in the form that the extension of the file names.
func (f *File) WriteReport(d *report.Document) error {
	if f == nil {
		return nil
	}
	form, err := FormOf(f.Name())
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := form.Write(&b, d); err != nil {
		return fmt.Errorf("%s: %w", f.flag, err)
	}
	return f.write(b.Bytes())
}
