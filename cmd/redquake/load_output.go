package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/run"
	"github.com/redquake/redquake/internal/result"
)

// outputFile is the file of --record or --report; nil = it was not asked for.
type outputFile struct {
	*os.File
	flag    string
	created bool // it did not exist before, and nothing was written to it
}

// openOutput opens the file before the load, so that a path that cannot be written fails at once. What it holds stays until write.
func openOutput(flag, path string) (*outputFile, error) {
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
	return &outputFile{file, flag, created}, nil
}

// discard removes the file if it was created for a load that never began.
func (f *outputFile) discard() {
	if f == nil || !f.created {
		return
	}
	_ = f.Close()
	_ = os.Remove(f.Name()) // what is left is empty, and does no harm
}

// write replaces the contents of the file.
func (f *outputFile) write(content []byte) error {
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

// writeRecord writes the record in the form that the operator stores.
func (f *outputFile) writeRecord(series *record.Series) error {
	if f == nil {
		return nil
	}
	packed, err := series.Encode(0)
	if err != nil {
		return fmt.Errorf("%s: %w", f.flag, err)
	}
	return f.write(packed)
}

// thisMachine is what stands for the name of a load test in the report of a load that had none.
const thisMachine = "from this machine"

// reportOf makes the report of a load from this machine.
func reportOf(load *result.Load, series *record.Series) *report.Document {
	return run.LoadTest(run.Input{Name: thisMachine, Load: load, Series: series})
}

// writeReport writes a report in the form that the extension of the file names.
func (f *outputFile) writeReport(d *report.Document) error {
	if f == nil {
		return nil
	}
	form, err := formOf(f.Name())
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := writeReport(&b, form, d); err != nil {
		return fmt.Errorf("%s: %w", f.flag, err)
	}
	return f.write(b.Bytes())
}
