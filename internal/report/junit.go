package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// The elements of a JUnit report.
type (
	junitSuites struct {
		XMLName xml.Name `xml:"testsuites"`
		junitCounts
		Suites []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name string `xml:"name,attr"`
		junitCounts
		Timestamp string      `xml:"timestamp,attr,omitempty"`
		Cases     []junitCase `xml:"testcase"`
		Out       string      `xml:"system-out,omitempty"`
	}
	junitCounts struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
	}
	junitCase struct {
		Name    string       `xml:"name,attr"`
		Class   string       `xml:"classname,attr"`
		Failure *junitReason `xml:"failure"`
		Error   *junitReason `xml:"error"`
		Out     string       `xml:"system-out,omitempty"`
	}
	junitReason struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
	}
)

// runCase is the case that stands for the run itself: it fails or ends in an error where no
// objective does.
const runCase = "run"

// WriteJUnit writes a report for programs that show the results of tests. Each objective is a case:
// a missed one is a failure, one that was not judged an error, so that an inconclusive run passes
// no gate. One more case, run, stands for what no objective is about: an error while there are
// doubts or no verdict, a failure if the verdict is Fail for another reason than an objective.
func WriteJUnit(w io.Writer, d *Document) error {
	class := strings.Trim(string(d.Kind)+"."+d.Namespace+"."+d.Name, ".")
	suite := junitSuite{
		Name: strings.TrimPrefix(d.Namespace+"/"+d.Name, "/"),
		Out:  xmlText(d.Finding.String()),
	}
	if !d.Time.IsZero() {
		suite.Timestamp = d.Time.UTC().Format("2006-01-02T15:04:05")
	}
	suite.Cases = append(suite.Cases, d.runCase(class))
	for i := range d.Objectives {
		suite.Cases = append(suite.Cases, d.Objectives[i].testCase(class))
	}
	for _, c := range suite.Cases {
		suite.Tests++
		if c.Failure != nil {
			suite.Failures++
		}
		if c.Error != nil {
			suite.Errors++
		}
	}
	text, err := xml.MarshalIndent(junitSuites{
		junitCounts: suite.junitCounts,
		Suites:      []junitSuite{suite},
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func (d *Document) runCase(class string) junitCase {
	c := junitCase{Name: runCase, Class: xmlText(class)}
	missed := false
	for _, o := range d.Objectives {
		missed = missed || o.Judged == Missed
	}
	switch {
	case d.Verdict == "" && d.Kind == Comparison && d.State == Complete: // nothing was required
	case d.Verdict == Inconclusive, d.Verdict == "":
		c.Error = &junitReason{Type: string(Inconclusive), Message: xmlText(d.doubtful())}
		if d.Verdict == "" {
			c.Error.Type = string(d.State)
		}
		if c.Error.Message == "" {
			c.Error.Message = fmt.Sprintf("no verdict: the state is %s", d.State)
		}
	case d.Verdict == Fail && !missed:
		c.Failure = &junitReason{Type: string(Fail), Message: xmlText(d.Reason)}
	}
	return c
}

// doubtful says why there is no verdict to rely on: a sentence for each doubt; without any the
// reason of the verdict or of the state.
func (d *Document) doubtful() string {
	if len(d.Doubts) == 0 {
		return d.Reason
	}
	var sentences []string
	for _, doubt := range d.Doubts {
		sentences = append(sentences,
			doubt.Reason+of(doubt.Of)+": "+strings.TrimRight(doubt.Message, ". ")+".")
	}
	return strings.Join(sentences, " ")
}

func (o *Objective) testCase(class string) junitCase {
	name := o.Name
	if o.Of != "" {
		name = o.Of + " " + name
	}
	c := junitCase{
		Name:  xmlText(name),
		Class: xmlText(class),
		Out:   xmlText(o.sentence()),
	}
	switch o.Judged {
	case Missed:
		c.Failure = &junitReason{Type: string(Missed), Message: xmlText(o.sentence())}
	case NotJudged:
		c.Error = &junitReason{Type: string(NotJudged), Message: xmlText(o.sentence())}
	}
	return c
}

// sentence is the message, or the value and the limit.
func (o *Objective) sentence() string {
	if o.Message != "" {
		return o.Message
	}
	actual := "not measured"
	if o.Actual != nil {
		actual = plain(InUnit(o.Unit, *o.Actual))
	}
	return fmt.Sprintf("%s is %s, limit %s", o.Name, actual, plain(InUnit(o.Unit, o.Limit)))
}

// xmlText is text without no-break spaces, and without characters that XML has no form for, which
// encoding/xml replaces.
func xmlText(s string) string {
	return strings.TrimSpace(plain(s))
}
