package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// failure is a test, or a package outside of its tests, that has failed.
type failure struct {
	pkg      string
	name     string // package and test, short
	messages []string
	path     string // of the file with the whole output
}

// line is a line that a test or a subtest has written.
type line struct{ test, text string }

const (
	longestMessage = 10 // lines
	longestCrash   = 20 // lines, of which the first ten are the runtime's
	mostMessages   = 12 // of a test
)

var (
	messageStart = regexp.MustCompile(`^ {4,}[^\s:]+\.go:\d+: `)
	crashStart   = regexp.MustCompile(`^\s*(panic: |fatal error: |WARNING: DATA RACE)`)
	resultLine   = regexp.MustCompile(`^\s*--- (FAIL|SKIP): `)
)

// messages extracts what a test says of itself from all that it has written, which may contain the
// log of a server: its messages, each bounded, panics and results.
func messages(text string) (found []string) {
	var message []string
	dropped, indent, longest := 0, -1, 0 // of the message; a crash has all that follows
	end := func() {
		if dropped > 0 {
			message = append(message, fmt.Sprintf("        ... %d more lines", dropped))
		}
		if len(message) > 0 {
			found = append(found, strings.Join(message, "\n"))
		}
		message, dropped, indent = nil, 0, -1
	}
	for text := range strings.SplitSeq(text, "\n") {
		leading := len(text) - len(strings.TrimLeft(text, " "))
		switch {
		case resultLine.MatchString(text):
			end()
			found = append(found, text)
		case messageStart.MatchString(text):
			end()
			message, indent, longest = []string{text}, leading+4, longestMessage
		case crashStart.MatchString(text) && indent != 0:
			end()
			message, indent, longest = []string{text}, 0, longestCrash
		case indent < 0 || leading < indent:
			end()
		case len(message) < longest:
			message = append(message, text)
		default:
			dropped++
		}
	}
	end()
	if n := len(found) - mostMessages; n > 0 { // the first ones and the last ones say most
		half := mostMessages / 2
		found = append(append(found[:half:half], fmt.Sprintf("    ... %d more messages", n)),
			found[half+n:]...)
	}
	return found
}

// fail writes the whole output of a test, or of a package outside of its tests, to a file. What it
// says of itself is shown at the end again.
func (s *summary) fail(pkg, test string, said []string, whole []line) {
	name, _, _ := strings.Cut(short(pkg), " [") // a build is of a package for a test
	f := failure{
		pkg:      pkg,
		name:     strings.TrimSpace(name + " " + test),
		messages: said,
	}
	var text strings.Builder
	for _, l := range whole {
		text.WriteString(l.text)
	}
	path := filepath.Join(s.folder, strings.NewReplacer("/", "-", " ", "-").Replace(f.name)+".log")
	err := os.MkdirAll(s.folder, 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text.String()), 0o644)
	}
	if err == nil {
		f.path = path
	} else {
		fmt.Fprintf(os.Stderr, "testsummary: keep the output of %s: %v\n", f.name, err)
	}
	s.failures = append(s.failures, f)
}

// printFailures prints each failure with its messages and where its output is, and writes the same
// to the file failuresFile for those who print more than a tier.
func (s *summary) printFailures() {
	if len(s.failures) == 0 {
		return
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\nFAILED\n")
	for _, f := range s.failures {
		fmt.Fprintln(&text, f.name)
		for _, message := range f.messages {
			fmt.Fprintln(&text, "    "+strings.ReplaceAll(message, "\n", "\n    "))
		}
		if f.path != "" {
			fmt.Fprintf(&text, "    all of its output: %s\n", f.path)
		}
	}
	_, _ = io.WriteString(s.out, text.String())
	if err := os.WriteFile(filepath.Join(s.folder, failuresFile), []byte(text.String()),
		0o644); err != nil {
		fmt.Fprintf(os.Stderr, "testsummary: %v\n", err)
	}
}

const failuresFile = "failures.txt"

// last returns at most n lines from the end, without those that only say that something has failed.
func last(n int, lines []line) (texts []string) {
	for _, l := range lines {
		text := strings.TrimRight(l.text, "\n")
		if text != "" && text != "FAIL" && text != "PASS" && !strings.HasPrefix(text, "FAIL\t") &&
			!strings.HasPrefix(text, "exit status ") {
			texts = append(texts, text)
		}
	}
	return texts[max(0, len(texts)-n):]
}
