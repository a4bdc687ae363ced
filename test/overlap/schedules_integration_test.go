//go:build integration

package overlap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/stage"
)

// overlapSeed is the variable with the seed of the schedules; a random one is printed.
const overlapSeed = "OVERLAP_SEED"

// How many schedules run: all of them, and a few.
const (
	allSchedules = 200
	fewSchedules = 5
)

func seedOf(t *testing.T, few bool) uint64 {
	t.Helper()
	seed := rand.Uint64N(1_000_000)
	if few { // tests of a change must not fail for another reason than that change
		seed = 1
	}
	if text := os.Getenv(overlapSeed); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", overlapSeed, err)
		}
	}
	t.Logf("%s=%d", overlapSeed, seed)
	return seed
}

// course is a few faults at random times, some of which are aborted or deleted, with or without a restart of the
// operator.
type course struct {
	number  int
	faults  []scheduled
	restart time.Duration // 0 = none
}

// scheduled is a fault of a schedule. Instants are offsets from the start of the schedule.
type scheduled struct {
	kind           stage.Kind
	load           string
	at, lasts      time.Duration
	aborted, ended time.Duration // by spec.abort, or by a deletion; 0 = it is not
}

// someSchedules are schedules of one stage.
type someSchedules struct {
	name      string
	on        overlapping
	schedules []course
}

// schedulesOf draws the schedules, each from the seed and its number, and distributes them to stages.
func schedulesOf(seed uint64, few bool) []someSchedules {
	stages := slices.DeleteFunc(slices.Clone(overlaps), func(o overlapping) bool { return o.pairsOnly })
	count, parts := allSchedules, 2*len(stages)
	if few {
		count, parts = fewSchedules, 3
	}
	all := make([]someSchedules, parts)
	for i := range parts {
		all[i].on = stages[i%len(stages)]
		all[i].name = fmt.Sprintf("%s/%d", all[i].on.name, i/len(stages))
	}
	for number := range count {
		part := &all[number%parts]
		part.schedules = append(part.schedules,
			drawSchedule(rand.New(rand.NewPCG(seed, uint64(number))), number, part.on.kinds))
	}
	return all
}

func drawSchedule(r *rand.Rand, number int, kinds []stage.Kind) course {
	within := func(from, to time.Duration) time.Duration {
		return (from + time.Duration(r.Int64N(int64(to-from)))).Truncate(10 * time.Millisecond)
	}
	s := course{number: number}
	for range 2 + r.IntN(3) {
		f := scheduled{
			kind:  kinds[r.IntN(len(kinds))],
			load:  loads[r.IntN(len(loads))],
			at:    within(0, 3*time.Second),
			lasts: within(time.Second, 2*time.Second),
		}
		switch r.IntN(6) {
		case 0, 1:
			f.aborted = f.at + within(0, 3*time.Second)
		case 2:
			f.ended = f.at + within(0, 3*time.Second)
		}
		s.faults = append(s.faults, f)
	}
	if r.IntN(5) < 2 {
		s.restart = within(time.Second, 4*time.Second)
	}
	return s
}

func (f scheduled) String() string {
	text := fmt.Sprintf("%s at %s for %s under %s", f.kind.Name, f.at, f.lasts, f.load)
	if f.aborted > 0 {
		text += fmt.Sprintf(", aborted at %s", f.aborted)
	}
	if f.ended > 0 {
		text += fmt.Sprintf(", deleted at %s", f.ended)
	}
	return text
}

func (s course) row() overlapRow {
	var others []string
	for _, f := range s.faults[1:] {
		others = append(others, f.String())
	}
	if s.restart > 0 {
		others = append(others, fmt.Sprintf("the operator is killed at %s", s.restart))
	}
	return overlapRow{
		First:  s.faults[0].String(),
		Second: strings.Join(others, "; "),
		Course: fmt.Sprintf("%s %d", schedules, s.number),
	}
}

// step is something that happens at an instant.
type step struct {
	at time.Duration
	do func()
}

func (s course) run(on *overlapStage) []string {
	var names []string
	var steps []step
	for _, f := range s.faults {
		name := fmt.Sprintf("fault-%d", on.Faults+1)
		names = append(names, name)
		made := on.newFault(f.kind, f.load, f.lasts)
		steps = append(steps, step{f.at, func() { on.Create(made) }})
		if f.aborted > 0 {
			steps = append(steps, step{f.aborted, func() { on.abort(name) }})
		}
		if f.ended > 0 {
			steps = append(steps, step{f.ended, func() {
				on.MustChange(client.IgnoreNotFound(
					on.Client.Delete(context.Background(), &v1alpha1.RedisFault{
						ObjectMeta: metav1.ObjectMeta{Namespace: on.Namespace, Name: name},
					})))
			}})
		}
	}
	if s.restart > 0 {
		steps = append(steps, step{s.restart, on.restart})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return int(a.at - b.at) })
	begun := time.Now()
	for _, one := range steps {
		await.PassTo(begun.Add(one.at), "the schedule")
		one.do()
	}
	return names
}
