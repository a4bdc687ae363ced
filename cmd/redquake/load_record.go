package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/redquake/redquake/internal/record"
)

// recordFile is the file of --record; nil = the record is not kept.
type recordFile struct {
	*os.File
	created bool // it did not exist before, and nothing was written to it
}

// openRecord opens the file before the load, so that a path that cannot be written fails at once. What it holds stays until write.
func openRecord(path string) (*recordFile, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	created := err == nil
	if errors.Is(err, os.ErrExist) {
		file, err = os.OpenFile(path, os.O_WRONLY, 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	return &recordFile{file, created}, nil
}

// discard removes the file if it was created for a load that never began.
func (f *recordFile) discard() {
	if f == nil || !f.created {
		return
	}
	_ = f.Close()
	_ = os.Remove(f.Name()) // what is left is empty, and does no harm
}

// write replaces the contents of the file by the record, in the form that the operator stores.
func (f *recordFile) write(series *record.Series) error {
	if f == nil {
		return nil
	}
	f.created = false
	packed, err := series.Encode(0)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(packed, 0)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("--record: %w", err)
	}
	return nil
}
