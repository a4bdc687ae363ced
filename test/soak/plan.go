// Package soak is a test of hours in minutes: load tests, faults and experiments at random, while what they need is
// killed, paused and taken away at random. `make soak` runs it in the lab. This part is pure: a plan of events from a
// seed, what must hold when they are over, and the report.
package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Kind is what happens at an instant of a plan.
type Kind string

// What a user does.
const (
	CreateLoadTest   Kind = "load test"
	CreateFault      Kind = "fault" // in reports with its type
	CreateExperiment Kind = "experiment"
	Abort            Kind = "abort"
	Delete           Kind = "delete"
	Suspend          Kind = "suspend"         // and resumed after a while
	Stop             Kind = "stop annotation" // on a namespace, and removed after a while
)

// What happens to the operator, the control plane and the nodes.
const (
	ManagerKilled     Kind = "manager killed"      // SIGKILL: the kubelet starts it again
	ManagerPodDeleted Kind = "manager pod deleted" // without grace
	ManagerPaused     Kind = "manager paused"      // as by SIGSTOP: it loses its Lease, and another process may not know
	LeaseTaken        Kind = "lease taken"         // by somebody else, and given back: the same process leads again
	APIServerPaused   Kind = "API server paused"
	EtcdPaused        Kind = "etcd paused"
	LoadPodDeleted    Kind = "load pod deleted"
	KubeletPaused     Kind = "kubelet paused"
	NodeSlowed        Kind = "node slowed"
)

// Disturbances are all that happens to the operator, the control plane and the nodes.
var Disturbances = []Kind{
	ManagerKilled, ManagerPodDeleted, ManagerPaused, LeaseTaken, APIServerPaused, EtcdPaused,
	LoadPodDeleted, KubeletPaused, NodeSlowed,
}

// Nodes are the names of the lab's nodes.
var Nodes = []string{"node-a", "node-b"}

// Event is one thing of a plan.
type Event struct {
	At     time.Duration      `json:"at"` // from the start of the plan
	Kind   Kind               `json:"kind"`
	World  string             `json:"world,omitempty"`
	Name   string             `json:"name,omitempty"` // of the object, or of the node
	Type   v1alpha1.FaultType `json:"type,omitempty"` // of a fault
	For    time.Duration      `json:"for,omitempty"`  // until it is taken back; 0 = it is not
	Object client.Object      `json:"object,omitempty"`
}

// Label is the kind of an event in reports.
func (e Event) Label() string {
	if e.Kind == CreateFault {
		return fmt.Sprintf("%s %s", e.Kind, e.Type)
	}
	return string(e.Kind)
}

// Plan is what happens when. The same seed and length give the same plan.
type Plan struct {
	Seed   uint64        `json:"seed"`
	Length time.Duration `json:"length"`
	Events []Event       `json:"events"` // in order
}

// Draw draws a plan. The streams of events have generators of their own: another gap in one of them does not change the
// others.
func Draw(seed uint64, length time.Duration) Plan {
	p := Plan{Seed: seed, Length: length}
	stream := func(n uint64) *dice { return &dice{rand.New(rand.NewPCG(seed, n))} }
	p.drawObjects(stream(1))
	p.drawStops(stream(2))
	p.drawDisturbances(stream(3))
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
	return p
}

// dice draws what plans are made of.
type dice struct{ *rand.Rand }

// within is a duration of whole tenths of a second.
func (d *dice) within(from, to time.Duration) time.Duration {
	return (from + time.Duration(d.Int64N(int64(to-from)))).Truncate(100 * time.Millisecond)
}

// percent is true in so many of 100 cases.
func (d *dice) percent(share int) bool {
	return d.IntN(100) < share
}

func oneOf[T any](d *dice, of ...T) T {
	return of[d.IntN(len(of))]
}

func (p *Plan) add(e Event) {
	p.Events = append(p.Events, e)
}

// drawObjects draws what users create, and what they do with it. Each world has a load from the start.
func (p *Plan) drawObjects(d *dice) {
	made := maker{dice: d, latest: map[string]lately{}}
	nextExperiment := d.within(20*time.Second, time.Minute)
	nextAnchor := 5 * time.Second
	for i, w := range Worlds {
		p.create(d, made.loadTest(w, time.Duration(i)*500*time.Millisecond))
	}
	for at := 5 * time.Second; at < p.Length; at += d.within(6*time.Second, 12*time.Second) {
		switch w := Worlds[d.IntN(len(Worlds))]; {
		case at >= nextAnchor:
			p.create(d, made.anchor(at))
			nextAnchor = at + d.within(50*time.Second, 80*time.Second)
		case at >= nextExperiment:
			p.create(d, made.experiment(at))
			nextExperiment = at + d.within(2*time.Minute, 4*time.Minute)
		case d.percent(22):
			p.create(d, made.loadTest(w, at))
		default:
			p.create(d, made.fault(w, at))
		}
	}
}

// create adds an object, and what a user does with it later.
func (p *Plan) create(d *dice, e Event) {
	p.add(e)
	later := Event{World: e.World, Name: e.Name} // the object's kind is found by its name
	later.At = e.At + d.within(2*time.Second, 25*time.Second)
	switch {
	case d.percent(18):
		later.Kind = Abort
	case d.percent(15):
		later.Kind = Delete
	case e.Kind != CreateExperiment && d.percent(8):
		later.Kind, later.For = Suspend, d.within(3*time.Second, 12*time.Second)
	default:
		return
	}
	p.add(later)
}

func (p *Plan) drawStops(d *dice) {
	for at := d.within(30*time.Second, 2*time.Minute); at < p.Length; at += d.within(90*time.Second, 3*time.Minute) {
		p.add(Event{
			At:    at,
			Kind:  Stop,
			World: oneOf(d, Worlds...).Name,
			For:   d.within(3*time.Second, 12*time.Second),
		})
	}
}

// lastLife is the part of a plan in which no manager is killed: what grows in a process that lives through everything
// else is seen at the end.
const lastLife = 0.4

// mostKills is how often a manager process is killed in 20 minutes: the kubelet waits longer each time before it starts
// the container again.
const mostKills = 3

// drawDisturbances draws one disturbance after another, each sometimes before the one before is over.
func (p *Plan) drawDisturbances(d *dice) {
	kills, most := 0, max(1, int(mostKills*p.Length/(20*time.Minute)))
	for at := d.within(10*time.Second, 30*time.Second); at < p.Length-15*time.Second; {
		e := Event{At: at, Kind: Disturbances[d.IntN(len(Disturbances))]}
		atEnd := float64(at) > (1-lastLife)*float64(p.Length)
		switch e.Kind {
		case ManagerKilled:
			if kills++; atEnd || kills > most {
				e.Kind = LeaseTaken
			}
		case ManagerPodDeleted:
			if atEnd {
				e.Kind = ManagerPaused
			}
		case LoadPodDeleted:
			e.World = oneOf(d, Worlds...).Name
		}
		switch e.Kind {
		case ManagerPaused, APIServerPaused, EtcdPaused:
			e.For = d.within(5*time.Second, oneOf(d, 15*time.Second, 35*time.Second))
		case LeaseTaken:
			e.For = d.within(5*time.Second, 25*time.Second)
		case KubeletPaused:
			e.For, e.Name = d.within(5*time.Second, 25*time.Second), oneOf(d, Nodes...)
		case NodeSlowed:
			e.For, e.Name = d.within(10*time.Second, 30*time.Second), oneOf(d, Nodes...)
		}
		p.add(e)
		at += e.For + d.within(10*time.Second, 25*time.Second)
		if d.percent(20) && e.For > 0 {
			at = e.At + d.within(2*time.Second, max(3*time.Second, e.For))
		}
	}
}
