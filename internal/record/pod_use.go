package record

import (
	"cmp"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record/codec"
)

// PodUse is what one container of an observed pod used, as the metrics API reports it.
type PodUse struct {
	At        int64  // end of the window that CPU is about, nanoseconds since T; may be negative
	Window    int64  // its length, nanoseconds
	Name      string // of the observed pods
	Pod       string
	Container string

	CPU      float64 // cores, mean over the window
	MaxCPU   float64 // cores, the highest of the readings that were merged into this one
	CPULimit float64 // cores; 0 = no limit
	Memory   int64   // bytes of the working set, the highest
}

// container identifies the container of a PodUse.
type container struct{ name, pod, container string }

func (u *PodUse) container() container { return container{u.Name, u.Pod, u.Container} }

// podUses are the readings of observed pods, by time.
type podUses struct {
	list []PodUse
	step time.Duration // of the grid on which readings of a container are merged; 0 = none were
}

const (
	// maxPodUses bounds the readings: beyond, those of a container are merged until half as many are left.
	maxPodUses = 4096
	// finestPodUse is the first step on which readings are merged: two of the usual 15 s.
	finestPodUse = 30 * time.Second
)

// PodUses returns the readings of observed pods by time. In a long run, or with many pods, those of a container within 30 s, 60 s and so on are merged.
func (s *Series) PodUses() []PodUse { return slices.Clone(s.podUses.list) }

// AddPodUses adds readings of observed pods. A reading that is there already is ignored, as the metrics API repeats it until it has a newer one.
func (s *Series) AddPodUses(uses []PodUse) (added bool) {
	p := &s.podUses
	for _, u := range uses {
		last := slices.IndexFunc(p.list, func(o PodUse) bool { return o.container() == u.container() && o.At >= u.At })
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

// thin merges the readings of each container that are in the same cell of a grid, and under the same limit.
func (p *podUses) thin(step time.Duration) {
	p.step = step
	kept, last := p.list[:0:0], map[container]int{}
	for _, u := range p.list {
		k, ok := last[u.container()]
		if ok && kept[k].At/int64(step) == u.At/int64(step) && kept[k].CPULimit == u.CPULimit {
			kept[k] = kept[k].merged(u)
			continue
		}
		last[u.container()] = len(kept)
		kept = append(kept, u)
	}
	slices.SortFunc(kept, comparePodUses)
	p.list = kept
}

// merged returns the reading over two windows, of which the one of later is the later.
func (u PodUse) merged(later PodUse) PodUse {
	if window := u.Window + later.Window; window > 0 {
		later.CPU = (u.CPU*float64(u.Window) + later.CPU*float64(later.Window)) / float64(window)
		later.Window = window
	}
	later.MaxCPU, later.Memory = max(u.MaxCPU, later.MaxCPU), max(u.Memory, later.Memory)
	return later
}

func comparePodUses(a, b PodUse) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container))
}

// minPodUseSize is the length of an empty PodUse: 3 texts, 3 numbers, 3 floats.
const minPodUseSize = 3 + 3 + 3*8

func appendPodUses(dst []byte, p *podUses) []byte {
	dst = codec.AppendInt(dst, int64(p.step))
	return codec.AppendList(dst, p.list, appendPodUse)
}

func appendPodUse(dst []byte, u *PodUse) []byte {
	for _, v := range [...]int64{u.At, u.Window, u.Memory} {
		dst = codec.AppendInt(dst, v)
	}
	for _, v := range [...]string{u.Name, u.Pod, u.Container} {
		dst = codec.AppendText(dst, v)
	}
	for _, v := range [...]float64{u.CPU, u.MaxCPU, u.CPULimit} {
		dst = codec.AppendFloat(dst, v)
	}
	return dst
}

func readPodUses(r *codec.Reader) podUses {
	p := podUses{step: time.Duration(r.Int())}
	if p.step < 0 || p.step%finestPodUse != 0 {
		r.Fail("readings of pods per %v", p.step)
		return podUses{}
	}
	p.list = codec.ReadList(r, minPodUseSize, func(u *PodUse) {
		*u = PodUse{At: r.Int(), Window: r.Int(), Memory: r.Int(), Name: r.Text(), Pod: r.Text(), Container: r.Text(), CPU: r.Float(), MaxCPU: r.Float(), CPULimit: r.Float()}
	})
	return p
}
