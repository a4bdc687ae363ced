package readings

import (
	"cmp"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/codec"
)

// container identifies the container of a PodUse.
type container struct{ name, pod, container string }

func containerOf(u *record.PodUse) container {
	return container{u.Name, u.Pod, u.Container}
}

// PodUses are the readings of observed pods, by time. In a long run, or with many pods, those of a
// container within 30 s, 60 s and so on are merged. The zero value is empty. It is not safe for
// concurrent use.
type PodUses struct {
	list []record.PodUse
	step time.Duration // of the grid on which readings of a container are merged; 0 = none were
}

const (
	// maxPodUses bounds the readings: beyond, those of a container are merged until half as many are
	// left.
	maxPodUses = 4096
	// finestPodUse is the first step on which readings are merged: two of the usual 15 s.
	finestPodUse = 30 * time.Second
)

// All returns the readings, by time.
func (p *PodUses) All() []record.PodUse {
	return slices.Clone(p.list)
}

// Add adds readings, and reports whether there were any that are new. A reading that is there
// already is ignored, as the metrics API repeats it until it has a newer one.
func (p *PodUses) Add(uses []record.PodUse) (added bool) {
	for _, u := range uses {
		last := slices.IndexFunc(p.list, func(o record.PodUse) bool {
			return containerOf(&o) == containerOf(&u) && o.At >= u.At
		})
		if last >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(p.list, u, comparePodUses)
		p.list = slices.Insert(p.list, at, u)
		added = true
	}
	if len(p.list) <= maxPodUses {
		return added
	}
	p.thin(max(finestPodUse, p.step)) // what was added since the last time
	for len(p.list) > maxPodUses/2 && p.step < 1<<20*finestPodUse {
		p.thin(2 * p.step)
	}
	return added
}

// thin merges the readings of each container that are in the same cell of a grid, and under the
// same limit.
func (p *PodUses) thin(step time.Duration) {
	p.step = step
	kept, last := p.list[:0:0], map[container]int{}
	for _, u := range p.list {
		k, ok := last[containerOf(&u)]
		if ok && kept[k].At/int64(step) == u.At/int64(step) && kept[k].CPULimit == u.CPULimit {
			kept[k] = mergedUse(kept[k], u)
			continue
		}
		last[containerOf(&u)] = len(kept)
		kept = append(kept, u)
	}
	slices.SortFunc(kept, comparePodUses)
	p.list = kept
}

// mergedUse returns the reading over two windows, of which the one of later is the later.
func mergedUse(u, later record.PodUse) record.PodUse {
	if window := u.Window + later.Window; window > 0 {
		later.CPU = (u.CPU*float64(u.Window) + later.CPU*float64(later.Window)) / float64(window)
		later.Window = window
	}
	later.MaxCPU = max(u.MaxCPU, later.MaxCPU)
	later.Memory = max(u.Memory, later.Memory)
	return later
}

func comparePodUses(a, b record.PodUse) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Pod, b.Pod),
		cmp.Compare(a.Container, b.Container))
}

// Size is the memory that the readings take, in bytes: about 150 each.
func (p *PodUses) Size() int {
	return len(p.list) * 150
}

// Append writes the readings.
func (p *PodUses) Append(dst []byte) []byte {
	return record.AppendPodUses(codec.AppendInt(dst, int64(p.step)), p.list)
}

// ReadPodUses reads the output of PodUses.Append.
func ReadPodUses(r *codec.Reader) PodUses {
	p := PodUses{step: time.Duration(r.Int())}
	if p.step < 0 || p.step%finestPodUse != 0 {
		r.Fail("readings of pods per %v", p.step)
		return PodUses{}
	}
	p.list = record.ReadPodUses(r)
	return p
}
