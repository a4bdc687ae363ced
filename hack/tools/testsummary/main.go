// Command testsummary reads the output of `go test -json` on its standard input and prints what `go
// test` would have printed, but of a test that fails only its own messages: not the log of a
// server. At the end come tables of the packages' times and the slowest tests, and then each test
// that failed, with its messages and the file that has all it wrote. It exits with 1 if a test or a
// build failed, or if nothing was tested.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

func main() {
	verbose := flag.Bool("v", false,
		"print the output of every test as it comes, not only of those that fail")
	slowest := flag.Int("slowest", 20, "how many of the slowest tests to list")
	folder := flag.String("folder", "build/test",
		"the output of tests that fail is kept in the folder TIER of this one")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: testsummary [flags] TIER [COMMAND [ARGUMENT...]]\n\n"+
			"Prints the result of `go test -json`, and a table of times at its end. With a COMMAND it runs that and reads its output;\n"+
			"its exit code counts, too. Otherwise it reads standard input.\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	began, machine := time.Now(), readMachine()
	kept := filepath.Join(*folder, flag.Arg(0))
	if err := os.RemoveAll(kept); err != nil { // of an earlier run
		fmt.Fprintln(os.Stderr, "testsummary:", err)
		os.Exit(1)
	}
	s := newSummary(os.Stdout, *verbose, kept)
	failed := false
	if command := flag.Args()[1:]; len(command) > 0 {
		failed = runCommand(s, command)
	} else {
		failed = s.read(os.Stdin) != nil
	}
	s.printTable(flag.Arg(0), *slowest, time.Since(began), readMachine().since(machine))
	s.printFailures()
	if failed || s.failed() {
		os.Exit(1)
	}
}

// runCommand gives the command's output to s, and reports whether the command failed.
func runCommand(s *summary, command []string) (failed bool) {
	c := exec.Command(command[0], command[1:]...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "testsummary: run %s: %v\n", command[0], err)
		return true
	}
	if err := s.read(out); err != nil {
		fmt.Fprintf(os.Stderr, "testsummary: read the output of %s: %v\n", command[0], err)
		failed = true
	}
	return c.Wait() != nil || failed
}

// event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a build, instead of Package
	FailedBuild string // why a package failed
	Test        string
	Output      string
	Elapsed     float64 // seconds
}

// read takes events until the end of r. A line that is no event is printed as it is: a build tool
// may write one.
func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				s.add(e)
			} else {
				_, _ = s.out.Write(line)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
