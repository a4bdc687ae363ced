// Command truthtable runs the tests of the scenarios in which a figure was once wrong, prints what
// was true beside what was reported, and writes the same as a JSON list. It exits with 1 if the
// tests failed in any way, if a report was wrong, or if the rows are not exactly those of rows.txt.
//
//	truthtable OUT.json COMMAND [ARGUMENT...]
package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"text/tabwriter"

	"github.com/redquake/redquake/internal/testing/truth"
)

// expected lists the rows of a complete run, one a line: the ID of the scenario, a space and its
// description.
//
//go:embed rows.txt
var expected string

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: truthtable OUT.json COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	if err := run(os.Stdout, os.Args[1], expected, os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "truthtable:", err)
		os.Exit(1)
	}
}

// run shows and writes all rows that there are, also if the command failed.
func run(w io.Writer, out, expected string, command []string) error {
	folder, err := os.MkdirTemp("", "truth")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	failed := runTests(w, folder, command)
	rows, err := readRows(folder)
	if err != nil {
		return errors.Join(failed, err)
	}
	return errors.Join(write(out, rows), printTable(w, rows), failed, check(rows, expected))
}

func runTests(w io.Writer, folder string, command []string) error {
	c := exec.Command(command[0], command[1:]...)
	c.Stdout, c.Stderr = w, os.Stderr
	c.Env = append(os.Environ(), truth.Folder+"="+folder)
	if err := c.Run(); err != nil {
		return fmt.Errorf("the tests failed: %w", err)
	}
	return nil
}

func printTable(w io.Writer, rows []truth.Row) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSCENARIO\tTRUTH\tREPORTED\tOK")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%v\n", r.ID, r.Scenario, r.Truth, r.Reported, r.OK)
	}
	return table.Flush()
}

func write(out string, rows []truth.Row) error {
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}
