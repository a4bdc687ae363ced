package object

import (
	"fmt"
	"strings"

	cmv1 "github.com/chaos-mesh/chaos-mesh/api/v1alpha1"
)

// State is the state of an object, from its status. Conditions are not read: AllRecovered is True
// of what was never injected, and all of them are one step late.
type State struct {
	Selected bool   // Chaos Mesh has found the pods
	Injected bool   // every one of them is broken
	Ever     bool   // some was, once
	Stopped  bool   // its time is over, it is paused or deleted; of PodKill, never but for a deletion
	Healed   bool   // it was broken and is reverted everywhere
	Where    string // "shop/redis-0 is Injected", of each; for people
	Failure  string // why the last attempt at some of them failed; "" = the last attempts went well
}

// Read reads an object's status. A record's phase may have a suffix with what it waits for: "Not
// Injected/Wait", "Injected/Wait".
func Read(child Object) State {
	experiment := child.GetStatus().Experiment
	some := len(experiment.Records) > 0
	state := State{
		Stopped:  experiment.DesiredPhase == cmv1.StoppedPhase,
		Selected: some,
		Injected: some,
	}
	whole := some // all are reverted
	var where []string
	for _, record := range experiment.Records {
		state.Injected = state.Injected && record.Phase == cmv1.Injected && record.InjectedCount > 0
		state.Ever = state.Ever || record.InjectedCount > 0
		whole = whole && record.Phase == cmv1.NotInjected
		where = append(where, record.Id+" is "+string(record.Phase))
		if failure := lastFailure(record); failure != "" {
			state.Failure = record.Id + ": " + failure
		}
	}
	state.Healed = state.Stopped && whole && state.Ever
	state.Where = strings.Join(where, ", ")
	return state
}

// lastFailure is the message of a record's last event, if that is a failure.
func lastFailure(record *cmv1.Record) string {
	if len(record.Events) == 0 {
		return ""
	}
	last := record.Events[len(record.Events)-1]
	if last.Type != cmv1.TypeFailed {
		return ""
	}
	return fmt.Sprintf("%s failed: %s", last.Operation, last.Message)
}

// String describes the state.
func (s State) String() string {
	text := "nothing is selected yet"
	switch {
	case s.Selected && s.Stopped && !s.Ever:
		text = "stopped before it took effect: " + s.Where
	case s.Healed:
		text = "reverted: " + s.Where
	case s.Selected:
		text = s.Where
	case s.Stopped:
		text = "stopped before anything was selected"
	}
	if s.Failure != "" {
		text += "; " + s.Failure
	}
	return text
}
