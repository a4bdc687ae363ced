package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/page"
	runreport "github.com/redquake/redquake/internal/report/run"
	"github.com/redquake/redquake/internal/result"
)

const reportHelp = `Write the report of a load test, or of a fault on it: what happened, how long, what was lost, how exactly that is known, and why not to trust it.

NAME is a RedisLoadTest of the cluster in the kubeconfig; with --fault it can be left out. FILE is what was saved of one, - for standard
input: RedisLoadTest, RedisFaults and the ConfigMap NAME-results in one file as YAML or JSON, as far as they were kept; or a record alone,
such as load --record writes; or the result of load -o json. An argument that names a file is a FILE.

Formats:
  html      one file that needs no network: curves with a cursor and zoom, phases, tables; readable in print, too
  markdown  for the comment of a pull request
  json      figures, objectives, doubts, sections; its schema is docs/report.schema.json
  junit     a case for each objective, and one for the run; what is not conclusive is an error, so that it passes no gate
  csv       a row for each figure

The report of a test that still runs has the figures until now. The exit code is 0 if the report was written, whatever the verdict is.
What each part of a report says is described in docs/reports.md.`

const reportExamples = `  # a page of a load test with its faults
  {name} report checkout-cache -n shop -o html > report.html

  # of one of the faults, for a pull request
  {name} report --fault kill-primary -n shop

  # from what was saved of a run, before its objects were deleted
  kubectl get redisloadtest/checkout-cache redisfault/kill-primary configmap/checkout-cache-results -n shop -o yaml > run.yaml
  {name} report run.yaml -o junit > junit.xml

  # from the record of a load from this machine
  {name} report run.record -o html > report.html`

// The forms of a report, and the extensions of files that have them.
var reportForms = []struct{ name, extension string }{{"markdown", ".md"}, {"html", ".html"}, {"json", ".json"}, {"junit", ".xml"}, {"csv", ".csv"}}

// writeReport writes a report in a form.
func writeReport(w io.Writer, form string, d *report.Document) error {
	switch form {
	case "html":
		return page.Write(w, d)
	case "json":
		return report.WriteJSON(w, d)
	case "junit":
		return report.WriteJUnit(w, d)
	case "csv":
		return report.WriteCSV(w, d)
	}
	return report.WriteMarkdown(w, d)
}

// formOf is the form of a report by the extension of its file.
func formOf(path string) (string, error) {
	extension := strings.ToLower(filepath.Ext(path))
	var known []string
	for _, f := range reportForms {
		if f.extension == extension {
			return f.name, nil
		}
		known = append(known, f.extension)
	}
	return "", fmt.Errorf("the extension of %s must be one of %s, which says what form the report has", path, strings.Join(known, ", "))
}

func formNames() (names []string) {
	for _, f := range reportForms {
		names = append(names, f.name)
	}
	return names
}

// reportFlags are the flags of `redquake report`.
type reportFlags struct {
	cluster clusterFlags
	output  string
	fault   string
}

func newReport(name string, io streams) *cobra.Command {
	var flags reportFlags
	cmd := &cobra.Command{
		Use:     "report NAME|FILE [flags]",
		Short:   "Write the report of a load test or of a fault",
		Long:    reportHelp,
		Example: strings.ReplaceAll(reportExamples, "{name}", name),
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(formNames(), flags.output) {
				return fmt.Errorf("--output: %q is none of %s", flags.output, strings.Join(formNames(), ", "))
			}
			if len(args) == 0 && flags.fault == "" {
				return errors.New("name a RedisLoadTest or a file, or a fault by --fault")
			}
			return broken(flags.run(cmd.Context(), args, io))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&flags.output, "output", "o", "markdown", "`format`: "+strings.Join(formNames(), ", "))
	f.StringVar(&flags.fault, "fault", "", "`name` of the RedisFault that the report is of")
	flags.cluster.register(f)
	return cmd
}

func (f *reportFlags) run(ctx context.Context, args []string, streams streams) error {
	in, err := f.read(ctx, args, streams.in)
	if err != nil {
		return err
	}
	d := (*report.Document)(nil)
	if f.fault == "" {
		d = runreport.LoadTest(*in)
	} else if d, err = runreport.Fault(*in, f.fault); err != nil {
		return err
	}
	return writeReport(streams.out, f.output, d)
}

// read reads a run from a file if there is one of this name, otherwise from the cluster.
func (f *reportFlags) read(ctx context.Context, args []string, stdin io.Reader) (*runreport.Input, error) {
	if len(args) == 0 {
		return f.fromCluster(ctx, "")
	}
	of := args[0]
	if of == "-" {
		return reportInput(stdin, "standard input")
	}
	file, err := os.Open(of)
	switch {
	case errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(of, "/."): // no name of a test has these
		return f.fromCluster(ctx, of)
	case err != nil:
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return reportInput(file, of)
}

// reportInput reads what was saved of a run.
func reportInput(in io.Reader, name string) (*runreport.Input, error) {
	text, err := readBounded(in, name, maxFile)
	if err != nil {
		return nil, err
	}
	input := &runreport.Input{Name: strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))}
	var load result.Load
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) && json.Unmarshal(text, &load) == nil && load.Latency != "" {
		if load.Version != result.LoadVersion {
			return nil, fmt.Errorf("%s has version %d; this program reads version %d", name, load.Version, result.LoadVersion)
		}
		input.Load = &load
		return input, nil
	}
	saved, err := readSaved(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := saved.report(input); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return input, nil
}

// report sets what a report is made of.
func (r *savedRun) report(in *runreport.Input) error {
	in.Series, in.Faults = r.series, r.faults
	tests := r.tests
	if r.test != "" { // the record says whose it is
		in.Name = r.test
		for i := range tests {
			if tests[i].Name == r.test {
				in.Test = &tests[i]
				return nil
			}
		}
		return nil
	}
	if len(tests) > 1 {
		return errors.New("contains more than one RedisLoadTest, and no record that says which one is meant: keep one a file")
	}
	if len(tests) == 1 {
		in.Test = &tests[0]
	}
	return nil
}
