package fault_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/testing/golden"
)

// Every kind says what it will do and how that is reverted, with actual values, and changes nothing by it.
func TestDescribe(t *testing.T) {
	var text strings.Builder
	synctest.Test(t, func(t *testing.T) { describe(t, &text) })
	file := filepath.Join("testdata", "descriptions.txt")
	golden.Compare(t, file, text.String())
}

// describe appends what the kinds say.
func describe(t *testing.T, text *strings.Builder) {
	t.Helper()
	for _, k := range kinds {
		r := begin(t, k)
		before, hit := r.shows(), r.hit.DeepCopy()
		d := r.injector().Describe(r.hit)
		if after := r.shows(); after != before || r.broken() != "" || !equality.Semantic.DeepEqual(hit, r.hit) {
			t.Errorf("%s: the description changed something:\n%s\nbefore:\n%s\nbroken: %s", k.name, after, before, r.broken())
		}
		if lasts := r.injector().Traits().Lasts > 0; lasts && d.Revert == "" {
			t.Errorf("%s lasts, and says nothing about its revert", k.name)
		}
		fmt.Fprintf(text, "%s\n  action: %s\n  revert: %s\n  self-ending: %s\n  manually: %s\n\n", k.name, d.Action,
			d.Revert, d.SelfEnding, r.injector().ManualRevertCommand(r.hit))
	}
}

// A record that cannot be read is described as such: nothing is injected by it.
func TestDescribeUnreadableRecord(t *testing.T) {
	forEachKind(t, func(t *testing.T, r *run) {
		if r.unrecorded || r.name == "PodKill that lasts" || r.name == "NodeLoss" { // their descriptions need none
			return
		}
		r.hit.Revert.Version++
		if d := r.injector().Describe(r.hit); !strings.HasPrefix(d.Action, "nothing: ") || d.Revert != "" {
			t.Errorf("%+v", d)
		}
		r.hit.Revert = nil
		if d := r.injector().Describe(r.hit); !strings.HasPrefix(d.Action, "nothing: ") {
			t.Errorf("without a record: %+v", d)
		}
	})
	unknown := fault.Unknown{Problem: problem.Invalid("no such type")}
	if got := unknown.Describe(&v1alpha1.FaultTarget{}); got != (contract.Description{Action: "nothing: no such type"}) {
		t.Errorf("%+v", got)
	}
}
