// Command gallery runs entries of config/gallery one after the other, each in a namespace of its
// own, and prints what came out:
//
//	gallery [--manifests config/gallery/lab] [--out build/gallery] [NAME...]
//
// Of each entry it keeps the report (NAME.html, NAME.md, NAME.json) and the finished objects
// (NAME.yaml), and of all a row in gallery.json beside that folder: {name, verdict, figure, value,
// seconds}. It ends with 1 if an entry has no figure. `make gallery` runs it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// row is the outcome of an entry.
type row struct {
	Name    string  `json:"name"`
	Verdict string  `json:"verdict"`
	Figure  string  `json:"figure"`
	Value   string  `json:"value"`
	Seconds float64 `json:"seconds"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gallery:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("gallery", flag.ContinueOnError)
	g := &gallery{}
	flags.StringVar(&g.kubectl, "kubectl", "kubectl", "the program kubectl")
	flags.StringVar(&g.redquake, "redquake", "bin/redquake", "the program redquake")
	flags.StringVar(&g.manifests, "manifests", "config/gallery",
		"folder with a kustomization for each entry")
	flags.StringVar(&g.out, "out", "build/gallery", "folder for reports and objects")
	flags.StringVar(&g.operator, "redis-operator", "",
		"manifests of the Redis operator, applied for the entry that needs it and deleted after it; "+
			"without them the cluster has it already")
	keep := flags.Bool("keep", false, "leave the namespaces")
	docs := flags.String("docs", "",
		"run nothing: fill the tables of the pages in this folder from the reports")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(flags.Args())
	if err != nil {
		return err
	}
	if *docs != "" {
		return g.writeDocs(*docs, chosen)
	}
	if err := os.MkdirAll(g.out, 0o755); err != nil {
		return err
	}
	var failed []error
	for _, e := range chosen {
		began := time.Now()
		r, err := g.runEntry(ctx, e, *keep)
		r.Seconds = time.Since(began).Round(time.Second).Seconds()
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", e.name, err))
			fmt.Fprintln(os.Stderr, "gallery:", failed[len(failed)-1])
		}
		if err := g.store(r); err != nil {
			return err
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err := g.print(); err != nil {
		return err
	}
	return errors.Join(append(failed, ctx.Err())...)
}

// choose returns the entries with the names, in the gallery's order; all without names.
func choose(names []string) ([]entry, error) {
	if len(names) == 0 {
		return entries, nil
	}
	var chosen []entry
	for _, e := range entries {
		if slices.Contains(names, e.name) {
			chosen = append(chosen, e)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(entries, func(e entry) bool { return e.name == name }) {
			var known []string
			for _, e := range entries {
				known = append(known, e.name)
			}
			return nil, fmt.Errorf("no entry %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}

func (g *gallery) table() string {
	return filepath.Join(filepath.Dir(filepath.Clean(g.out)), "gallery.json")
}

// rows reads what earlier entries left.
func (g *gallery) rows() ([]row, error) {
	text, err := os.ReadFile(g.table())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var rows []row
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("%s: %w", g.table(), err)
	}
	return rows, nil
}

// store replaces the row of an entry.
func (g *gallery) store(r row) error {
	rows, err := g.rows()
	if err != nil {
		return err
	}
	rows = append(slices.DeleteFunc(rows, func(old row) bool { return old.Name == r.Name }), r)
	place := func(name string) int {
		return slices.IndexFunc(entries, func(e entry) bool { return e.name == name })
	}
	slices.SortFunc(rows, func(a, b row) int { return place(a.Name) - place(b.Name) })
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(g.table(), append(text, '\n'), 0o644)
}

func (g *gallery) print() error {
	rows, err := g.rows()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "\nNAME\tTIME\tVERDICT\tFIGURE\tVALUE")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", r.Name, time.Duration(r.Seconds*float64(time.Second)),
			r.Verdict, r.Figure, r.Value)
	}
	return table.Flush()
}
