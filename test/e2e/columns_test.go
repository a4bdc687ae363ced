//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestColumns follows a run and a fault the way `kubectl get -w` shows them: through the API server's own tables.
func TestColumns(t *testing.T) {
	n := newNamespace(t, "columns")
	n.applyRedis(nil)
	test := n.sampleLoad("checkout-cache", time.Second, time.Second, 72*time.Second)
	fault := n.sampleKill("kill-primary", test.Name)
	fault.Spec.Trigger.SteadyFor = span(3 * time.Second)
	n.create(test)
	n.create(fault)

	var statuses, progress []string
	duringRun := map[string]string{}
	n.eventually(4*time.Minute, "the run and the fault end", func() (bool, string) {
		_, _, ended, failed := standing(n.loadTest(test.Name).Status.Conditions) // before the row: the last one shows the end
		_, _, faultEnded, faultFailed := standing(n.fault(fault.Name).Status.Conditions)
		row := n.row("redisloadtests")
		if last := len(statuses) - 1; last < 0 || statuses[last] != row["Status"] {
			statuses = append(statuses, row["Status"])
		}
		if p := row["Progress"]; p != "" && !slices.Contains(progress, p) {
			progress = append(progress, p)
		}
		if row["Status"] == v1alpha1.ReasonRunning {
			for name, cell := range row {
				if cell != "" {
					duringRun[name] = cell
				}
			}
		}
		return (ended || failed) && (faultEnded || faultFailed), fmt.Sprint(row)
	})
	t.Logf("STATUS went through %v, PROGRESS through %v", statuses, progress)

	for _, want := range []string{v1alpha1.ReasonPreparing, v1alpha1.ReasonRunning, v1alpha1.ReasonSucceeded} {
		if !slices.Contains(statuses, want) {
			t.Errorf("STATUS never was %s: %v", want, statuses)
		}
	}
	if len(progress) < 5 || progress[len(progress)-1] != "100%" {
		t.Errorf("PROGRESS went through %v, want at least 5 steps and 100%% at the end", progress)
	}
	for _, name := range []string{"Progress", "TPS", "P99", "Errors", "Dip", "Recovery", "Trend", "Age"} {
		if duringRun[name] == "" {
			t.Errorf("the column %s was never filled while the test ran", name)
		}
	}
	if duringRun["Verdict"] != "" {
		t.Errorf("the verdict was %s before the end", duringRun["Verdict"])
	}

	row := n.row("redisloadtests")
	for _, name := range []string{"Name", "Status", "Progress", "TPS", "P99", "Errors", "Dip", "Recovery", "Trend", "Verdict", "Age"} {
		if row[name] == "" {
			t.Errorf("the column %s is empty at the end", name)
		}
	}
	s := n.loadTest(test.Name).Status.Summary
	if row["TPS"] != s.Throughput || row["P99"] != s.Latency.P99 || row["Errors"] != fmt.Sprint(s.Errors) || row["Dip"] != s.TPSDip || row["Recovery"] != s.RecoveryTime {
		t.Errorf("the row %v is not the summary %+v", row, s)
	}
	// The kill left a hole: the drawing must hold a full bar and a lower one.
	if trend := []rune(row["Trend"]); len(trend) < 10 || !strings.ContainsRune(row["Trend"], '▇') && !strings.ContainsRune(row["Trend"], '█') || len(slices.Compact(slices.Sorted(slices.Values(trend)))) < 2 {
		t.Errorf("TREND is %q", row["Trend"])
	}
	row = n.row("redisfaults")
	for _, name := range []string{"Name", "Type", "Status", "Target", "Effect", "Dip", "Outage", "Recovery", "Age"} {
		if row[name] == "" {
			t.Errorf("the fault's column %s is empty at the end", name)
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
