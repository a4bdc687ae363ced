//go:build e2e

package e2e_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/format"
)

// figuresFile names the file that keeps the figures of a run: measurements, which no test judges. Without it they are
// only logged.
const figuresFile = "REDQUAKE_E2E_FIGURES"

// figures are values as a status shows them, by scenario and name.
type figures map[string]map[string]string

func (f figures) set(scenario, name, value string) {
	if f[scenario] == nil {
		f[scenario] = map[string]string{}
	}
	f[scenario][name] = value
}

// measured are the figures of this run.
var measured = struct {
	sync.Mutex
	figures
}{figures: figures{}}

// figure keeps a figure of a scenario. It must be there, and be a number; how large it is, is the machine's doing.
func (n *namespace) figure(scenario, name, value string) {
	n.Helper()
	if _, err := number(value); err != nil {
		n.Errorf("%s: %s is %q: %v", scenario, name, value, err)
		return
	}
	n.Logf("%s: %s %s", scenario, name, value)
	measured.Lock()
	defer measured.Unlock()
	measured.set(scenario, name, value)
}

// impactFigures keeps all figures of an impact. None may be less than the fault alone makes it, however fast the
// machine is: least.
func (n *namespace) impactFigures(scenario string, i *v1alpha1.Impact, least map[string]string) {
	n.Helper()
	if i == nil {
		n.Fatalf("%s: there is no impact", scenario)
	}
	values := map[string]string{
		"baselineTPS":  string(i.BaselineTPS),
		"dip":          shareText(i.Dip.Value),
		"outage":       durationText(&i.Outage.BoundedDuration),
		"errors":       fmt.Sprint(i.Errors),
		"lostRequests": fmt.Sprint(i.LostRequests),
	}
	var shardOutage *v1alpha1.BoundedDuration
	if o := i.Outages.Shard; o != nil {
		shardOutage = &o.BoundedDuration
	}
	// These are absent if there is nothing to measure: no error, no shards, no recovery.
	for name, value := range map[string]string{
		"timeToImpact":        durationText(i.TimeToImpact),
		"probeOutage":         durationText(i.Outages.Probe),
		"shardOutage":         durationText(shardOutage),
		"errorWindow":         format.Duration(i.ErrorWindow.Duration),
		"recoveredThroughput": shareText(i.RecoveredThroughput),
	} {
		if value != "" {
			values[name] = value
		}
	}
	if i.Recovered {
		values["recoveryTime"] = durationText(i.RecoveryTime)
	}
	if i.LostWrites != nil {
		values["lostWrites"] = fmt.Sprint(*i.LostWrites)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		n.figure(scenario, name, values[name])
	}
	for name, limit := range least {
		is, err := number(values[name])
		if low, err2 := number(limit); err != nil || err2 != nil || is < low {
			n.Errorf("%s: %s is %q, want %s at least", scenario, name, values[name], limit)
		}
	}
}

// keepFigures prints this run's figures beside those of the run before and what figures.yaml documents, and writes them
// to the file.
func keepFigures(out io.Writer, file string) error {
	before, err := readFigures(file)
	if err != nil {
		return err
	}
	text, err := os.ReadFile("figures.yaml")
	if err != nil {
		return err
	}
	var seen map[string]map[string][2]string
	if err := yaml.UnmarshalStrict(text, &seen); err != nil {
		return fmt.Errorf("figures.yaml: %w", err)
	}
	measured.Lock()
	defer measured.Unlock()
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "SCENARIO\tFIGURE\tNOW\tBEFORE\tDOCUMENTED\t")
	for _, scenario := range slices.Sorted(maps.Keys(measured.figures)) {
		for _, name := range slices.Sorted(maps.Keys(measured.figures[scenario])) {
			value := measured.figures[scenario][name]
			documented, note := documentation(seen[scenario][name], value)
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", scenario, name, value, cmp.Or(before[scenario][name], "-"),
				documented, note)
			before.set(scenario, name, value) // what this run did not measure stays
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if text, err = json.MarshalIndent(before, "", "  "); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

func readFigures(file string) (figures, error) {
	all := figures{}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}

// documentation is the documented range of a figure, and a note where a value is beyond it.
func documentation(seen [2]string, value string) (text, note string) {
	least, err := number(seen[0])
	most, err2 := number(seen[1])
	is, err3 := number(value)
	switch {
	case err != nil || err2 != nil || err3 != nil:
		return "-", ""
	case is < least:
		note = "less"
	case is > most:
		note = "more"
	}
	if least == most {
		return seen[0], note
	}
	return seen[0] + " to " + seen[1], note
}

// number reads a share (99.2%), a duration (4.12s) in seconds, or a plain number.
func number(text string) (float64, error) {
	if n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64); err == nil {
		return n, nil
	}
	d, err := time.ParseDuration(text)
	return d.Seconds(), err
}

// shareText and durationText write figures of a status as text; "" if there is none.
func shareText(d v1alpha1.Decimal) string {
	x, err := strconv.ParseFloat(string(d), 64)
	if err != nil {
		return ""
	}
	return format.Share(x)
}

func durationText(d *v1alpha1.BoundedDuration) string {
	if d == nil {
		return ""
	}
	return format.Duration(d.Value.Duration)
}

var (
	// withUnit is a figure as people write it.
	withUnit = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h|%|Ki|Mi|Gi|/s)+$`)
	// exact is a duration as v1alpha1.Duration writes it.
	exact = regexp.MustCompile(`^-?[0-9]+(\.[0-9]{1,6})?(us|ms|s)$`)
)

// figuresAreExact checks that of the figures in the status of an object only durations have a unit, of which they have
// one, except for status.display.
func (n *namespace) figuresAreExact(objects ...client.Object) {
	n.Helper()
	for _, object := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			n.Fatal(err)
		}
		status := content["status"].(map[string]any)
		if status["display"] == nil {
			n.Errorf("%s has no status.display", object.GetName())
		}
		delete(status, "display")
		for _, text := range texts("status", status) {
			if path, value, _ := strings.Cut(text, "="); withUnit.MatchString(value) &&
				!exact.MatchString(value) {
				n.Errorf("%s: %s is %q: a rounded text", object.GetName(), path, value)
			}
		}
	}
}

// texts are all strings below a value, each as path=text.
func texts(path string, value any) (found []string) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			found = append(found, texts(path+"."+key, inner)...)
		}
	case []any:
		for _, inner := range v {
			found = append(found, texts(path+"[]", inner)...)
		}
	case string:
		found = append(found, path+"="+v)
	}
	return found
}
