// Package rows keeps what a measurement has found, a row for each case, in a file that several tests extend.
package rows

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"sync"
	"testing"
)

var writing sync.Mutex

// Add adds a row to the JSON array in the file that an environment variable names; without the variable it does
// nothing. Tests of one process may add at the same time.
func Add(t testing.TB, variable string, row any) {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		return
	}
	writing.Lock()
	defer writing.Unlock()
	var all []any
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &all)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		text, err = json.MarshalIndent(append(all, row), "", " ")
	}
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Errorf("add a row to %s: %v", path, err)
	}
}
