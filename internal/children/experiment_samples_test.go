package children_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/manifest"
)

// Every load test and fault of the sample experiments is accepted by the CRDs.
func TestSampleExperimentsHaveCells(t *testing.T) {
	files, err := filepath.Glob("../../config/samples/experiment*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			e := experimentIn(t, text)
			e.UID = "1"
			plan, err := experiment.NewPlan(&e.Spec)
			if err != nil {
				t.Fatal(err)
			}
			for n := range plan.Runs() / plan.Repeat {
				slot := plan.Slot(n+1, 1)
				v := &plan.Variants[slot.Variant]
				expectAccepted(t, v.Name, children.RunLoadTest(e, v, slot), &v1alpha1.RedisLoadTest{})
				for _, f := range append(children.RunSettings(e, v, slot), children.RunFaults(e, v, slot, 1)...) {
					expectAccepted(t, v.Name, f, &v1alpha1.RedisFault{})
				}
			}
		})
	}
}

// experimentIn is the experiment of a file, of a schedule a run of it.
func experimentIn(t *testing.T, text []byte) *v1alpha1.RedisExperiment {
	t.Helper()
	var e v1alpha1.RedisExperiment
	if !strings.Contains(string(text), "kind: RedisExperimentSchedule") {
		if err := manifest.Decode(text, &e); err != nil {
			t.Fatal(err)
		}
		return &e
	}
	var s v1alpha1.RedisExperimentSchedule
	if err := manifest.Decode(text, &s); err != nil {
		t.Fatal(err)
	}
	s.UID = "2"
	made := children.ScheduledExperiment(&s, time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC), "")
	expectAccepted(t, "the schedule",
		children.ScheduledExperiment(&s, time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC), made.Name), &e)
	return made
}

func expectAccepted(t *testing.T, cell string, made, into manifest.Object) {
	t.Helper()
	text, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	if err := manifest.Decode(text, into); err != nil {
		t.Errorf("cell %s: %s: %v", cell, made.GetName(), err)
	}
}
