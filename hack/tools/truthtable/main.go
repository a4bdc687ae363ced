// Command truthtable reads the rows that package truth wrote into a folder, prints them as a table and writes them as one JSON list. It exits with 1
// if a report was wrong or a scenario is missing.
//
//	truthtable FOLDER OUT.json
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/redquake/redquake/internal/testing/truth"
)

// scenarios is how many numbered scenarios there are: T1 to T24.
const scenarios = 24

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: truthtable FOLDER OUT.json")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "truthtable:", err)
		os.Exit(1)
	}
}

func run(folder, out string) error {
	rows, err := read(folder)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSCENARIO\tTRUTH\tREPORTED\tOK")
	var wrong []string
	found := map[string]bool{}
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%v\n", r.ID, r.Scenario, r.Truth, r.Reported, r.OK)
		if found[r.ID] = true; !r.OK {
			wrong = append(wrong, r.ID)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, append(text, '\n'), 0o644); err != nil {
		return err
	}
	for i := 1; i <= scenarios; i++ {
		if id := "T" + strconv.Itoa(i); !found[id] {
			wrong = append(wrong, id+" (not run)")
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("wrong or missing: %s", strings.Join(wrong, ", "))
	}
	return nil
}

// read returns the rows of a folder, ordered by the number of the scenario.
func read(folder string) ([]truth.Row, error) {
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
		return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a.Scenario, b.Scenario))
	})
	return rows, nil
}
