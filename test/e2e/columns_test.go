//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// columns are what `kubectl get -w` showed of a run, through the API server's own tables.
type columns struct {
	statuses, progress []string          // of the load test, in the order in which they came
	running            map[string]string // the cells that were filled while the load ran
}

// followColumns follows a load test and a fault, the only ones of the namespace, to their ends.
func (n *namespace) followColumns(test, fault string) columns {
	n.Helper()
	c := columns{running: map[string]string{}}
	n.eventually(2*patience, "the run and the fault end", func() (bool, string) {
		// before the row: the last one shows the end
		_, _, ended, failed := completeReason(n.loadTest(test).Status.Conditions)
		_, _, faultEnded, faultFailed := completeReason(n.fault(fault).Status.Conditions)
		row := n.row("redisloadtests")
		if last := len(c.statuses) - 1; last < 0 || c.statuses[last] != row["Status"] {
			c.statuses = append(c.statuses, row["Status"])
		}
		if p := row["Progress"]; p != "" && !slices.Contains(c.progress, p) {
			c.progress = append(c.progress, p)
		}
		if row["Status"] == v1alpha1.ReasonRunning {
			for name, cell := range row {
				if cell != "" {
					c.running[name] = cell
				}
			}
		}
		return (ended || failed) && (faultEnded || faultFailed), fmt.Sprint(row)
	})
	n.Logf("STATUS went through %v, PROGRESS through %v", c.statuses, c.progress)
	return c
}

// checkColumns checks the columns of a run that a fault hit, during it and at the end.
func (n *namespace) checkColumns(c columns, test *v1alpha1.RedisLoadTest) {
	n.Helper()
	for _, want := range []string{v1alpha1.ReasonPreparing, v1alpha1.ReasonRunning, v1alpha1.ReasonSucceeded} {
		if !slices.Contains(c.statuses, want) {
			n.Errorf("STATUS never was %s: %v", want, c.statuses)
		}
	}
	if len(c.progress) < 5 || c.progress[len(c.progress)-1] != "100%" {
		n.Errorf("PROGRESS went through %v, want at least 5 steps and 100%% at the end", c.progress)
	}
	for _, name := range []string{"Progress", "TPS", "P99", "Errors", "Trend", "Age"} {
		if c.running[name] == "" {
			n.Errorf("the column %s was never filled while the test ran", name)
		}
	}
	if c.running["Verdict"] != "" {
		n.Errorf("the verdict was %s before the end", c.running["Verdict"])
	}

	row, s := n.row("redisloadtests"), test.Status.Display
	for _, name := range []string{
		"Name", "Status", "Progress", "TPS", "P99", "Errors", "Trend", "Verdict", "Age",
		"Faults",
	} {
		if row[name] == "" {
			n.Errorf("the column %s is empty at the end", name)
		}
	}
	if row["TPS"] != s.TPS || row["P99"] != s.P99 || row["Errors"] != s.Errors || row["Faults"] != s.Faults {
		n.Errorf("the row %v is not the display %+v", row, s)
	}
	// The kill left a hole: the drawing must hold a full bar and a lower one.
	if trend := []rune(row["Trend"]); len(trend) < 10 || !strings.ContainsAny(row["Trend"], "▇█") ||
		len(slices.Compact(slices.Sorted(slices.Values(trend)))) < 2 {
		n.Errorf("TREND is %q", row["Trend"])
	}
	row = n.row("redisfaults")
	for _, name := range []string{
		"Name", "Type", "Status", "Target", "Effect", "Dip", "Outage", "Recovery", "Verdict",
		"Age",
	} {
		if row[name] == "" {
			n.Errorf("the fault's column %s is empty at the end", name)
		}
	}
}

// row is the only row of `kubectl get RESOURCE`, by column.
func (n *namespace) row(resource string) map[string]string {
	n.Helper()
	raw, err := cluster.clientset.Discovery().RESTClient().Get().
		AbsPath("/apis/redquake.dev/v1alpha1/namespaces", n.name, resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(n.Context())
	if err != nil {
		n.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		n.Fatal(err)
	}
	if table.Kind != "Table" || len(table.Rows) != 1 {
		n.Fatalf("%s: kind %s with %d rows, want a Table with 1", resource, table.Kind, len(table.Rows))
	}
	row := map[string]string{}
	for i, column := range table.ColumnDefinitions {
		if cell := table.Rows[0].Cells[i]; cell != nil {
			row[column.Name] = fmt.Sprint(cell)
		}
	}
	return row
}
