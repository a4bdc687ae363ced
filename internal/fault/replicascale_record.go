package fault

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// What a scaling records for its way back, and what it has seen so far: the operator may be another process by then.
const (
	undoSet       = "statefulSet" // its name
	undoUID       = "uid"         // of the StatefulSet
	undoReplicas  = "replicas"    // of the StatefulSet before
	undoPrimary   = "primary"     // host:port of the selected server's primary, at first
	undoFollowers = "followers"   // how many replicas that primary listed
	undoSyncs     = "syncs"       // of that primary: run_id and its counts of full and of partial syncs, before
	undoSlot      = "slot"        // lowest slot of the selected server's shard; absent outside of a cluster
	undoingSince  = "undoingSince"
	undoMember    = "pod " // and its name: a member
)

// member is what is known of one pod that comes or goes.
type member struct {
	Address string    `json:"address,omitempty"` // host:port of its server when it was seen last
	Nodes   []string  `json:"nodes,omitempty"`   // the IDs that it had as a node of a cluster
	Slot    *int      `json:"slot,omitempty"`    // lowest slot of its shard; nil outside of a cluster
	Came    time.Time `json:"came,omitzero"`     // seen first
	Synced  time.Time `json:"synced,omitzero"`   // seen in sync and ready first
	How     string    `json:"how,omitempty"`     // it came to be in sync
	Gone    time.Time `json:"gone,omitzero"`     // seen gone first
}

func memberOf(target *v1alpha1.FaultTarget, pod string) member {
	var m member
	if text, ok := undoValue(target, undoMember+pod); ok {
		_ = json.Unmarshal([]byte(text), &m) // this type wrote it; what it cannot read is found out anew
	}
	return m
}

func setMember(target *v1alpha1.FaultTarget, pod string, m member) {
	text, _ := json.Marshal(m) // it has no type that could fail
	setUndo(target, undoMember+pod, string(text))
}

// members are all pods that are known to come or go, by name.
func members(target *v1alpha1.FaultTarget) iter.Seq2[string, member] {
	return func(yield func(string, member) bool) {
		for _, u := range target.Undo {
			if pod, ok := strings.CutPrefix(u.Name, undoMember); ok && !yield(pod, memberOf(target, pod)) {
				return
			}
		}
	}
}

// undoText is what was recorded under a name; "" where nothing was.
func undoText(target *v1alpha1.FaultTarget, name string) string {
	value, _ := undoValue(target, name)
	return value
}

// note records an instant, and noted reads it back.
func note(target *v1alpha1.FaultTarget, name string, at time.Time) {
	setUndo(target, name, at.UTC().Format(time.RFC3339Nano))
}

func noted(target *v1alpha1.FaultTarget, name string) (at time.Time, ok bool) {
	at, err := time.Parse(time.RFC3339Nano, undoText(target, name))
	return at, err == nil
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
