package soak

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/manifest"
)

func text(t *testing.T, p Plan) string {
	t.Helper()
	out, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestASeedHasOnePlan(t *testing.T) {
	t.Parallel()
	first := text(t, Draw(7, 20*time.Minute))
	if again := text(t, Draw(7, 20*time.Minute)); again != first {
		t.Error("the same seed gives two plans")
	}
	if other := text(t, Draw(8, 20*time.Minute)); other == first {
		t.Error("two seeds give the same plan")
	}
}

// Whatever can happen happens in a few seeds, most of it in each, and every object passes admission.
func TestEverythingHappens(t *testing.T) {
	t.Parallel()
	const seeds = 20
	in := map[string]int{}
	for seed := range uint64(seeds) {
		had := map[string]bool{}
		for _, e := range Draw(seed, 20*time.Minute).Events {
			had[e.Label()] = true
			if e.Object == nil {
				continue
			}
			e.Object.SetNamespace("soak")
			if err := manifest.Admit(e.Object.(manifest.Object)); err != nil {
				t.Errorf("seed %d: %s %s: %v", seed, e.Label(), e.Name, err)
			}
		}
		for label := range had {
			in[label]++
		}
	}
	want := []string{
		string(CreateLoadTest), string(CreateExperiment), string(Abort), string(Delete), string(Suspend),
		string(Stop),
	}
	for _, d := range Disturbances {
		want = append(want, string(d))
	}
	for _, w := range Worlds {
		for _, kind := range w.Types {
			want = append(want, Event{Kind: CreateFault, Type: kind}.Label())
		}
	}
	for _, label := range slices.Compact(slices.Sorted(slices.Values(want))) {
		if in[label] < seeds/2 {
			t.Errorf("%s is in %d of %d plans", label, in[label], seeds)
		}
	}
}

// A plan fits two busy cores, and ends: what it takes away it gives back.
func TestAPlanIsBounded(t *testing.T) {
	t.Parallel()
	const length = 20 * time.Minute
	for seed := range uint64(20) {
		objects, kills := 0, 0
		names := map[string]bool{}
		for _, e := range Draw(seed, length).Events {
			if e.Object != nil {
				objects++
				if names[e.Name] {
					t.Errorf("seed %d: two objects are called %s", seed, e.Name)
				}
				names[e.Name] = true
			}
			if e.Kind == ManagerKilled {
				kills++
			}
			if (e.Kind == ManagerKilled || e.Kind == ManagerPodDeleted) && float64(e.At) > (1-lastLife)*float64(length) {
				t.Errorf("seed %d: %s at %s: no process lives through the end", seed, e.Kind, e.At)
			}
			if e.For > 35*time.Second {
				t.Errorf("seed %d: %s for %s", seed, e.Kind, e.For)
			}
		}
		if objects < 90 || objects > 200 || kills > mostKills {
			t.Errorf("seed %d: %d objects, %d kills", seed, objects, kills)
		}
	}
}
