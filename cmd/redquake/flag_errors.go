package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redquake/redquake/cmd/redquake/internal/loadflags"
)

// ofFlag is an error of a flag for whoever wrote it.
func ofFlag(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return ofName(cmd, unknown)
	}
	return ofValue(err)
}

// ofName says which flag is meant, by that of another program or by one of a similar name.
func ofName(cmd *cobra.Command, err *pflag.NotExistError) error {
	name := err.GetSpecifiedName()
	if cmd.Name() == "load" {
		if flag := loadflags.Instead(name); flag != "" {
			return fmt.Errorf("%w; here: %s", err, flag)
		}
	}
	best, distance := "", unlike
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := min(edits(name, f.Name), beginning(name, f.Name)); d < distance && !f.Hidden {
			best, distance = f.Name, d
		}
	})
	if best == "" || len(name) < 3 {
		return err
	}
	return fmt.Errorf("%w; did you mean --%s?", err, best)
}

// unlike is how many edits make a name another one.
const unlike = 3

// beginning is how far a name is from the beginning of another one, which is a little more than
// from the whole of a third one.
func beginning(name, of string) int {
	least := unlike
	if len(name) < 4 {
		return least
	}
	for n := len(name) - 1; n <= min(len(name)+1, len(of)-1); n++ {
		least = min(least, edits(name, of[:n])+1)
	}
	return least
}

// edits is the number of letters to replace, insert or delete.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// ofValue says of which kind the value of a flag must be, instead of which function cannot read it.
func ofValue(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	value, flag := invalid.GetValue(), invalid.GetFlag()
	kind, ok := map[string]string{
		"int32":    "a whole number, at most 2147483647",
		"int64":    "a whole number",
		"bool":     "true or false",
		"duration": "a duration, as 1m30s or 5ms",
		"rate":     "requests per second from 1/h to 100000000/s: 500, 10k, 0.5, or per minute or hour: 30/m, 100/h",
	}[flag.Value.Type()]
	switch {
	case !ok:
		return err
	case flag.Value.Type() == "duration" && strings.Trim(value, ".0123456789") == "" && value != "":
		kind = fmt.Sprintf("a duration with its unit: %ss?", value)
	case flag.Value.Type() == "duration" && duration.MatchString(value):
		kind = "a shorter duration: at most 290 years can be counted"
	}
	return fmt.Errorf("--%s: %q must be %s", flag.Name, value, kind)
}

// duration is the form of one.
var duration = regexp.MustCompile(`^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)
