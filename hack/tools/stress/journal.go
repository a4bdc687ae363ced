package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// entry is one run of a package.
type entry struct {
	Package string  `json:"package"`
	Beside  string  `json:"beside"`
	Run     string  `json:"run"` // the expression that selected the tests
	Seed    int64   `json:"seed"`
	Seconds float64 `json:"seconds"`
	// Failed is whether the program failed though no test of its own did, as when its TestMain failed.
	Failed bool      `json:"failed,omitempty"`
	Tests  []outcome `json:"tests"`
}

// journal is a file with a line for each run of a package. A line is on the disk before the next
// run begins.
type journal struct {
	file    *os.File
	entries []entry
}

// openJournal reads what an earlier command has written. A line without an end is what that was
// writing when it was killed; it is removed.
func openJournal(path string) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	j := &journal{file: file}
	whole := bytes.LastIndexByte(text, '\n') + 1
	if err == nil {
		j.entries, err = parseEntries(text[:whole])
	}
	if err == nil {
		err = file.Truncate(int64(whole))
	}
	if err == nil {
		_, err = file.Seek(int64(whole), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return j, nil
}

func parseEntries(text []byte) (entries []entry, err error) {
	for line := range bytes.Lines(text) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func (j *journal) add(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return err
	}
	j.entries = append(j.entries, e)
	return j.file.Sync()
}

// runs counts how often the package's tests have run beside the load.
func (j *journal) runs(p testPackage, l load) (n int) {
	for _, e := range j.entries {
		if e.Package == p.name && e.Run == p.run && e.Beside == l.String() {
			n++
		}
	}
	return n
}

func (j *journal) close() error {
	return j.file.Close()
}
