// Command stress runs every integration test, and the smoke test of e2e, many times beside
// processes that keep the machine busy. It counts which tests fail and how long they take. See
// usage.
//
// A round runs every package once, as `make integration` does: with the build tag integration, two
// packages at a time, and an API server of its own, as tests choose names at random that must be
// new. The order of the tests in a package is shuffled. The smoke test comes last and alone.
//
// A line of JSON is written for each package that was run, so that an interrupted command goes on
// with what is missing. The lines belong to a key, by default the commit and a hash of the changes
// to it: other code starts at zero.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

const usage = `usage: stress [flags] PACKAGE...

Runs the integration tests of the packages many times beside busy processes, and writes FOLDER.json: for each test ` +
	`and each kind of load the runs, the
failures and the times. What failing tests wrote is below FOLDER/failures/KEY. It goes on where it was interrupted. ` +
	`The exit code is 1 if a test has failed.

`

// options are what the flags say.
type options struct {
	folder, key string
	// tests, as for go test -run; its first part selects among the integration tests
	run      string
	loads    []load
	parallel int           // packages at a time
	timeout  time.Duration // of one run of a package
	limit    time.Duration // after which no round begins
	smoke    bool
	exec     string // the command that runs the smoke test
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == busyCommand {
		keepBusy(os.Args[2])
	}
	o, err := parseFlags()
	if err != nil {
		fmt.Fprintln(os.Stderr, "stress:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM,
		syscall.SIGHUP)
	failed, err := stress(ctx, o, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "stress:", err)
	}
	if failed || err != nil {
		os.Exit(1)
	}
}

func parseFlags() (options, error) {
	var o options
	var runs int
	var beside string
	flag.StringVar(&o.folder, "folder", "build/stress",
		"for binaries, results and the output of tests that fail; the table is FOLDER.json")
	flag.StringVar(&o.key, "key", "",
		"results with the same `key` are added up; default: the commit and a hash of the changes to it")
	flag.IntVar(&runs, "runs", 20, "how often each test runs beside each load")
	flag.StringVar(&beside, "beside", "2,4,disk",
		"the loads: a number of busy loops, or disk; with :RUNS for another number of runs")
	flag.StringVar(&o.run, "run", "", "only the tests that match, as for go test -run")
	flag.IntVar(&o.parallel, "p", 2, "how many packages run at a time")
	flag.DurationVar(&o.timeout, "timeout", 40*time.Minute, "the time limit of one run of a package")
	flag.DurationVar(&o.limit, "limit", 0, "the time after which no round begins; 0: none")
	flag.BoolVar(&o.smoke, "smoke", false, "run the smoke test of e2e in every round, too")
	flag.StringVar(&o.exec, "exec", "", "the command that runs the smoke test; with an absolute path")
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage); flag.PrintDefaults() }
	flag.Parse()
	var err error
	if o.loads, err = parseLoads(beside, runs); err != nil {
		return o, err
	}
	if _, err := regexp.Compile(o.run); err != nil {
		return o, fmt.Errorf("-run: %w", err)
	}
	if flag.NArg() == 0 && !o.smoke {
		return o, errors.New("no package: see stress -h")
	}
	if o.folder, err = filepath.Abs(o.folder); err != nil {
		return o, err
	}
	if o.key == "" {
		o.key, err = keyOfTree()
	}
	return o, err
}

// stress reports whether a test has failed, in this run or in one that it continues.
func stress(ctx context.Context, o options, patterns []string) (failed bool, err error) {
	packages, err := findPackages(ctx, patterns, o.run)
	if err != nil {
		return false, err
	}
	if o.smoke {
		smoke, err := smokePackage(o.run, o.exec)
		if err != nil {
			return false, err
		}
		packages = append(packages, smoke...)
	}
	if len(packages) == 0 {
		return false, errors.New("no test matches")
	}
	if err := os.MkdirAll(o.folder, 0o755); err != nil {
		return false, err
	}
	fmt.Printf("stress: the results of %s are in %s.json, the output of tests that fail is in %s\n",
		o.key, o.folder, o.failures())
	book, err := openJournal(filepath.Join(o.folder, o.key+".jsonl"))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, book.close()) }()
	t := &tests{
		options:  o,
		packages: packages,
		journal:  book,
		began:    time.Now(),
	}
	err = t.compile(ctx)
	if err == nil {
		err = t.rounds(ctx)
	}
	rows := summarize(book.entries)
	err = errors.Join(err, writeRows(o.folder+".json", rows))
	printRows(os.Stdout, rows)
	if err == nil {
		t.printRest(os.Stdout)
	}
	return anyFailed(rows), err
}

func (o options) failures() string {
	return filepath.Join(o.folder, "failures", o.key)
}
