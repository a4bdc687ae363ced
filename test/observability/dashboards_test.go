// Package observability_test checks the dashboards and the alerts of config/components against the metrics that there
// are.
package observability_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/metrics"
	"github.com/redquake/redquake/internal/testing/prometheustest"
)

const root = "../.."

var (
	name     = regexp.MustCompile(`\bredquake_[a-z_]+`)
	selector = regexp.MustCompile(`\b(redquake_[a-z_]+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z]+)(=~|!~|!=|=)"`)
)

// queries are those of all dashboards and rules.
func queries(t *testing.T) []prometheustest.Query {
	all := prometheustest.ReadRules(t, root).Queries()
	for _, d := range prometheustest.Dashboards(t, root) {
		all = append(all, d.Queries()...)
		for _, v := range d.Templating.List {
			all = append(all, prometheustest.Query{From: d.File + ": variable " + v.Name, Expr: v.Definition})
		}
	}
	return all
}

// Every metric and label that a query names exists, and every metric is in a dashboard or a rule.
func TestQueriesNameMetrics(t *testing.T) {
	labels := map[string][]string{}
	for _, d := range metrics.Definitions() {
		labels[d.Name] = d.Labels
	}
	used := map[string]bool{}
	base := func(series string) string {
		if base := strings.TrimSuffix(series, "_bucket"); labels[base] != nil {
			return base
		}
		return series
	}
	all := queries(t)
	for _, d := range metrics.Definitions() {
		all = append(all, prometheustest.Query{From: "the example of " + d.Name, Expr: d.Example})
	}
	for i, q := range all {
		for _, series := range name.FindAllString(q.Expr, -1) {
			if _, exists := labels[base(series)]; !exists {
				t.Errorf("%s: there is no %s", q.From, series)
			}
			used[base(series)] = used[base(series)] || i < len(all)-len(labels)
		}
		for _, s := range selector.FindAllStringSubmatch(q.Expr, -1) {
			for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
				if !slices.Contains(labels[base(s[1])], m[1]) && m[1] != "job" {
					t.Errorf("%s: %s has no label %s", q.From, s[1], m[1])
				}
			}
		}
	}
	for name := range labels {
		if !used[name] {
			t.Errorf("no dashboard and no rule uses %s", name)
		}
	}
}

// Grafana shows the panels side by side, and marks the faults at their instants.
func TestDashboards(t *testing.T) {
	uids := map[string]bool{}
	for _, d := range prometheustest.Dashboards(t, root) {
		if d.UID+".json" != d.File || uids[d.UID] || d.Title == "" {
			t.Errorf("%s: uid %s, title %s", d.File, d.UID, d.Title)
		}
		uids[d.UID] = true
		ids, taken := map[int]bool{}, map[[2]int]string{}
		for _, p := range d.Panels {
			if ids[p.ID] || p.ID == 0 || p.Title == "" || len(p.Targets) == 0 {
				t.Errorf("%s: panel %d %q has %d queries", d.File, p.ID, p.Title, len(p.Targets))
			}
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
						t.Errorf("%s: panel %q lies on %q, or outside", d.File, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
		}
		marks := 0
		for _, a := range d.Annotations.List {
			if strings.Contains(a.Expr, "redquake_fault_injected_timestamp_seconds") && a.UseValueForTime {
				marks++
			}
		}
		if marks != 1 {
			t.Errorf("%s marks injections %d times", d.File, marks)
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "config", "components", "dashboards", "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for uid := range uids {
		if !strings.Contains(string(text), "["+uid+".json]") {
			t.Errorf("the component has no %s", uid)
		}
	}
}

// Every alert has a severity, a text, and a page that says what it means, what to look at and what to do.
func TestRunbooks(t *testing.T) {
	const pages = "https://github.com/redquake/redquake/blob/main/docs/runbooks/"
	known := map[string]bool{}
	for _, g := range prometheustest.ReadRules(t, root).Groups {
		for _, r := range g.Rules {
			known[r.Alert] = true
			if a := r.Annotations; a["summary"] == "" || a["description"] == "" || r.Labels["severity"] == "" ||
				a["runbook_url"] != pages+r.Alert+".md" {
				t.Errorf("%s: labels %v, annotations %v", r.Alert, r.Labels, a)
			}
		}
	}
	for _, alert := range []string{
		"RevertFailed", "FaultOverstayed", "ExperimentRegressed", "ScheduleRegressed",
		"ScheduleNotReady", "ScheduleSkipsRuns", "ManagerStalled",
	} {
		if !known[alert] {
			t.Errorf("there is no alert %s", alert)
		}
		text, err := os.ReadFile(filepath.Join(root, "docs", "runbooks", alert+".md"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, heading := range []string{"# " + alert, "## What it means", "## What to look at", "## What to do"} {
			if !strings.Contains(string(text), heading+"\n") {
				t.Errorf("%s.md lacks %q", alert, heading)
			}
		}
	}
}
