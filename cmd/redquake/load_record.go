package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/redquake/redquake/internal/record"
)

// recordFile is the file of --record; nil = the record is not kept.
type recordFile struct{ *os.File }

// openRecord opens the file before the load, so that a path that cannot be written fails at once. What it holds stays until write.
func openRecord(path string) (*recordFile, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	return &recordFile{file}, nil
}

// write replaces the contents of the file by the record, in the form that the operator stores.
func (f *recordFile) write(series *record.Series) error {
	if f == nil {
		return nil
	}
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
