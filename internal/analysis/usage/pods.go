package usage

import (
	"slices"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

// Pods is what the observed pods of one name used.
type Pods struct {
	Name  string
	Count int // pods that had readings, one after the other or together
	// of one pod: its containers together. The limit is that of a pod whose containers all have one
	CPU    CPU
	Memory int64 // bytes of the working set: the highest of a pod
}

// InWindow reports whether a reading counts in a window: the middle of the time that it is about
// does.
func InWindow(u *record.PodUse, from, to time.Duration) bool {
	middle := time.Duration(u.At - u.Window/2)
	return middle >= from && middle < to
}

// ObservedPods returns the use of the observed pods in the window, by name; those without a reading
// there are absent.
func ObservedPods(s *merged.Series, w Window) []Pods {
	var found []*podsSum
	for _, u := range s.PodUses() {
		if !InWindow(&u, w.From, w.To) {
			continue
		}
		i := slices.IndexFunc(found, func(p *podsSum) bool { return p.Name == u.Name })
		if i < 0 {
			i = len(found)
			found = append(found, &podsSum{Pods: Pods{Name: u.Name}, at: map[podAt]*podUse{}})
		}
		found[i].add(&u)
	}
	var all []Pods
	for _, p := range found {
		all = append(all, p.result())
	}
	slices.SortFunc(all, func(a, b Pods) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// podAt is a pod at the end of the window of a reading.
type podAt struct {
	pod string
	at  int64
}

// podUse is the sum over the containers of a pod.
type podUse struct {
	cpu, most, limit float64
	unlimited        bool
	memory           int64
	window           time.Duration
}

type podsSum struct {
	Pods
	at    map[podAt]*podUse
	order []podAt // sums of floats depend on it
}

func (p *podsSum) add(u *record.PodUse) {
	key := podAt{u.Pod, u.At}
	pod := p.at[key]
	if pod == nil {
		pod = &podUse{window: time.Duration(u.Window)}
		p.at[key], p.order = pod, append(p.order, key)
	}
	pod.cpu += u.CPU
	pod.most += u.MaxCPU
	pod.limit += u.CPULimit
	pod.unlimited = pod.unlimited || u.CPULimit == 0
	pod.memory += u.Memory
}

func (p *podsSum) result() Pods {
	var all mean
	pods := map[string]bool{}
	for _, key := range p.order {
		u := p.at[key]
		pods[key.pod] = true
		window := max(u.window, time.Nanosecond)
		all.add(u.cpu*window.Seconds(), window)
		p.CPU.Max = max(p.CPU.Max, u.most)
		p.Memory = max(p.Memory, u.memory)
		if !u.unlimited && (p.CPU.Limit == 0 || u.limit < p.CPU.Limit) {
			p.CPU.Limit = u.limit
		}
	}
	p.Count, p.CPU.Mean = len(pods), all.value()
	return p.Pods
}
