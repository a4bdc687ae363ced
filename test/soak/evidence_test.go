//go:build e2e

package soak

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// evidence saves what was done and seen, and has each violation name the file that shows most of it.
func (s *soak) evidence(broken []Violation) {
	s.Helper()
	f := s.facts
	for _, o := range f.Faults {
		s.saveObject(o.World, o.Object)
	}
	for _, o := range f.LoadTests {
		s.saveObject(o.World, o.Object)
	}
	for _, o := range f.Experiments {
		s.saveObject(o.World, o.Object)
	}
	s.save("course.txt", s.course())
	s.save("facts.json", f)
	s.save("events.txt", s.clusterEvents())
	objects := map[string]bool{}
	for _, e := range s.plan.Events {
		objects[e.World+"/"+e.Name] = e.Object != nil || objects[e.World+"/"+e.Name]
	}
	for i := range broken {
		v := &broken[i]
		v.Evidence = "course.txt"
		switch {
		case objects[v.Object]:
			v.Evidence = objectFile(v.Object)
		case v.Judgement == Panicked || v.Judgement == Growth:
			v.Evidence = "manager-*.log"
		}
		v.Evidence = "soak/" + fmt.Sprint(s.plan.Seed) + "/" + v.Evidence
	}
}

func objectFile(object string) string {
	return "objects/" + strings.ReplaceAll(object, "/", "-") + ".yaml"
}

func (s *soak) saveObject(world string, object client.Object) {
	s.Helper()
	object.SetManagedFields(nil)
	out, err := yaml.Marshal(object)
	if err != nil {
		s.Fatal(err)
	}
	s.save(objectFile(world+"/"+object.GetName()), string(out))
}

// course is all that happened, in order: events, when a manager led, when effects were seen.
func (s *soak) course() string {
	type line struct {
		at   time.Time
		text string
	}
	var lines []line
	add := func(at time.Time, text string, args ...any) {
		lines = append(lines, line{at, fmt.Sprintf(text, args...)})
	}
	for _, e := range s.facts.Events {
		what := strings.TrimSpace(fmt.Sprintf("%s %s/%s %s", e.Label(), e.World, e.Name, e.Target))
		switch {
		case e.Err != "":
			add(e.Began, "%s: not carried out: %s", what, e.Err)
		case e.Began.IsZero():
			add(e.Began, "%s: nothing to do it to", what)
		default:
			add(e.Began, "%s", what)
		}
		if !e.Ended.IsZero() {
			add(e.Ended, "%s: over", what)
		}
	}
	led := false
	for _, sample := range s.facts.Able {
		if sample.OK != led {
			led = sample.OK
			add(sample.At, "a manager leads: %t", led)
		}
	}
	for mark, seen := range s.facts.Marks {
		add(seen.First, "%s: seen first", mark)
		add(seen.Last, "%s: seen last", mark)
	}
	for _, p := range s.facts.Pulses {
		if took, answered := s.facts.took(p); !answered || took > answerLimit {
			add(p.Created, "%s: answered %t, after %s with a manager that leads, at %s", p.Name, answered, took,
				clock(p.Answered))
		}
	}
	for _, o := range s.facts.Faults {
		if late, _, due, mark := s.facts.lateness(o); late > time.Second {
			add(due, "%s: due, and gone %s later", mark, late)
		}
	}
	for _, r := range s.facts.Restarts {
		add(r.At, "manager %s ended: %s, exit code %d: %s", r.Pod, r.Reason, r.Code, r.Said)
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	var text strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&text, "%s  %s\n", clock(l.at), l.text)
	}
	return text.String()
}

// clusterEvents are the Kubernetes events of the worlds and of the operator's namespace.
func (s *soak) clusterEvents() string {
	var text strings.Builder
	namespaces := []string{system}
	for _, w := range s.worlds {
		namespaces = append(namespaces, w.namespace)
	}
	for _, ns := range namespaces {
		var events corev1.EventList
		if err := s.List(s.Context(), &events, client.InNamespace(ns)); err != nil {
			fmt.Fprintf(&text, "%s: %v\n", ns, err)
		}
		for _, e := range events.Items {
			at := e.LastTimestamp.Time
			if at.IsZero() {
				at = e.EventTime.Time
			}
			fmt.Fprintf(&text, "%s %s %s %s/%s: %s\n", clock(at), ns, e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name,
				e.Message)
		}
	}
	return text.String()
}
