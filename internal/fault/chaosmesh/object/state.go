package object

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// State is what an object's status says. Conditions are not read: AllRecovered is True of what was never injected, and all of them are one step late.
type State struct {
	Selected bool   // Chaos Mesh has found the pods
	Injected bool   // every one of them is broken
	Ever     bool   // some was, once
	Stopped  bool   // its time is over, it is paused or deleted; of PodKill, never but for a deletion
	Healed   bool   // it was broken and is reverted everywhere
	Where    string // "shop/redis-0 is Injected", of each; for people
	Failure  string // why the last attempt at some of them failed; "" = the last attempts went well
}

// The phases of a record. What stands between them has a suffix: "Not Injected/Wait", "Injected/Wait".
const (
	notInjected = "Not Injected"
	injected    = "Injected"
)

// Read reads an object's status.
func Read(child *unstructured.Unstructured) State {
	desired, _, _ := unstructured.NestedString(child.Object, "status", "experiment", "desiredPhase")
	records, _, _ := unstructured.NestedSlice(child.Object, "status", "experiment", "containerRecords")
	state := State{Stopped: desired == "Stop", Selected: len(records) > 0, Injected: len(records) > 0}
	whole := len(records) > 0 // all are reverted
	var where []string
	for _, item := range records {
		record, _ := item.(map[string]any)
		id, _, _ := unstructured.NestedString(record, "id")
		phase, _, _ := unstructured.NestedString(record, "phase")
		count, _, _ := unstructured.NestedInt64(record, "injectedCount")
		state.Injected = state.Injected && phase == injected && count > 0
		state.Ever = state.Ever || count > 0
		whole = whole && phase == notInjected
		where = append(where, id+" is "+phase)
		if failure := lastFailure(record); failure != "" {
			state.Failure = id + ": " + failure
		}
	}
	state.Healed = state.Stopped && whole && state.Ever
	state.Where = strings.Join(where, ", ")
	return state
}

// lastFailure is the message of a record's last event, if that tells of a failure.
func lastFailure(record map[string]any) string {
	events, _, _ := unstructured.NestedSlice(record, "events")
	if len(events) == 0 {
		return ""
	}
	last, _ := events[len(events)-1].(map[string]any)
	kind, _, _ := unstructured.NestedString(last, "type")
	if kind != "Failed" {
		return ""
	}
	operation, _, _ := unstructured.NestedString(last, "operation")
	message, _, _ := unstructured.NestedString(last, "message")
	return fmt.Sprintf("%s failed: %s", operation, message)
}

// String says where the object stands.
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
