package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/testing/truth"
)

// readRows returns the rows of a folder, ordered by the number of the scenario.
func readRows(folder string) ([]truth.Row, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	rows := make([]truth.Row, len(names))
	for i, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &rows[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	number := func(r truth.Row) int {
		n, _ := strconv.Atoi(strings.TrimPrefix(r.ID, "T"))
		return n
	}
	slices.SortStableFunc(rows, func(a, b truth.Row) int {
		return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a.ID, b.ID),
			cmp.Compare(a.Scenario, b.Scenario))
	})
	return rows, nil
}

// check returns an error that names every row that is wrong, missing, not expected, or there more
// than once.
func check(rows []truth.Row, expected string) error {
	var problems []error
	found := map[string]int{}
	for _, r := range rows {
		name := r.ID + " " + r.Scenario
		if found[name]++; found[name] == 2 {
			problems = append(problems, fmt.Errorf("more than one row: %s", name))
		}
		if !r.OK {
			problems = append(problems, fmt.Errorf("wrong: %s", name))
		}
	}
	for name := range strings.Lines(expected) {
		if name = strings.TrimSpace(name); found[name] == 0 {
			problems = append(problems, fmt.Errorf("missing: %s", name))
		}
		delete(found, name)
	}
	for _, r := range rows {
		if name := r.ID + " " + r.Scenario; found[name] > 0 {
			problems = append(problems,
				fmt.Errorf("not in hack/tools/truthtable/rows.txt; add the line: %s", name))
			delete(found, name)
		}
	}
	return errors.Join(problems...)
}
