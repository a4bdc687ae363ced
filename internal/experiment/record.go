package experiment

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// RecordVersion is the version of Record's JSON: it increases when a field is renamed, removed or
// means something else.
const RecordVersion = 1

// maxRecord is the longest JSON of a record that is read.
const maxRecord = 8 << 20

// Record is the runs of an experiment that have ended, in their order. Its JSON is described in
// docs/record.md.
type Record struct {
	Version int           `json:"version"`
	Cells   []string      `json:"cells"` // their names, in the order of the matrix
	Runs    []RecordedRun `json:"runs"`

	// Revision is that of the object from which it was read; "" = none.
	Revision string `json:"-"`
}

// RecordedRun is a run that has ended.
type RecordedRun struct {
	Cell     int       `json:"cell"`  // its position in Cells
	Round    int       `json:"round"` // from 1
	LoadTest string    `json:"loadTest"`
	Start    time.Time `json:"start,omitzero"`
	End      time.Time `json:"end,omitzero"`
	// the verdict of its load test or of a fault is Fail
	Missed       bool   `json:"missed,omitempty"`
	Failed       string `json:"failed,omitempty"`       // that, or why it could not complete
	Inconclusive string `json:"inconclusive,omitempty"` // why it has no figures to compare
	// what a fault or a setting of it has left behind
	Unreverted string           `json:"unreverted,omitempty"`
	OpenLoop   bool             `json:"openLoop,omitempty"`
	Server     string           `json:"server,omitempty"` // such as redis 7.0.15
	Values     map[string]Value `json:"values,omitempty"`
}

// Encode compresses a record.
func (r *Record) Encode() ([]byte, error) {
	data, err := Encode(r)
	if err != nil {
		return nil, fmt.Errorf("the experiment's record: %w", err)
	}
	return data, nil
}

// ErrTooLong is that of a JSON that would not be read.
var ErrTooLong = fmt.Errorf("it is longer than %d bytes", maxRecord)

// Encode returns compressed JSON, for a ConfigMap; the error is ErrTooLong if Decode would not read
// it.
func Encode(of any) ([]byte, error) {
	text, err := json.Marshal(of)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	if len(text) > maxRecord {
		return nil, ErrTooLong
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err = w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return out.Bytes(), nil
}

// Decode reads what Encode has written.
func Decode(data []byte, into any) error {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(z, maxRecord+1))
	if err != nil {
		return err
	}
	if len(text) > maxRecord {
		return ErrTooLong
	}
	return json.Unmarshal(text, into)
}

// DecodeRecord reads a record of this version or an earlier one.
func DecodeRecord(data []byte) (*Record, error) {
	var r Record
	if err := Decode(data, &r); err != nil {
		return nil, fmt.Errorf("read the experiment's record: %w", err)
	}
	if r.Version > RecordVersion {
		return nil, fmt.Errorf(
			"the experiment's record has version %d, later than %d: it is of a newer version of Redquake",
			r.Version, RecordVersion)
	}
	if err := r.Check(); err != nil {
		return nil, fmt.Errorf("read the experiment's record: %w", err)
	}
	return &r, nil
}

// Check finds runs of cells that there are not.
func (r *Record) Check() error {
	for i := range r.Runs {
		if c := r.Runs[i].Cell; c < 0 || c >= len(r.Cells) {
			return fmt.Errorf("run %d is of cell %d of %d", i+1, c, len(r.Cells))
		}
	}
	return nil
}

// Recorded is a run as the record keeps it.
func Recorded(r Run, slot Slot) RecordedRun {
	return RecordedRun{
		Cell:         slot.Variant,
		Round:        slot.Round,
		LoadTest:     r.Source,
		Start:        r.Start,
		Inconclusive: r.Inconclusive,
		OpenLoop:     r.OpenLoop,
		Values:       r.Values,
	}
}

// run is a recorded run as it is compared.
func (r *RecordedRun) run() Run {
	return Run{
		Source:       r.LoadTest,
		Start:        r.Start,
		Round:        r.Round,
		Inconclusive: r.Inconclusive,
		OpenLoop:     r.OpenLoop,
		Values:       r.Values,
	}
}

// CellsOf are the recorded runs by their cells.
func (r *Record) CellsOf(baselineOf func(cell int) string) []Cell {
	cells := make([]Cell, len(r.Cells))
	for i, name := range r.Cells {
		cells[i] = Cell{Name: name, Baseline: baselineOf(i)}
	}
	for i := range r.Runs {
		c := &cells[r.Runs[i].Cell]
		c.Runs = append(c.Runs, r.Runs[i].run())
	}
	return cells
}
