package pace

import (
	"math"

	"github.com/redquake/redquake/internal/plan"
)

// Users are virtual users. A user sends one batch per turn; after the batch's last reply it pauses
// for the think time, then its next turn is due.
type Users struct {
	level plan.Schedule // how many are active, over all pods
	flat  int64         // instant after which the level is constant
	Think int64
	Idle  Turns // ordered by due time
}

// Turn is one virtual user and the state of its current turn.
type Turn struct {
	User int64 // number over all pods: the user is active while the level is above it
	Due  int64 // of the next turn
	Left int   // requests of the current turn without an outcome
}

// NewUsers returns part number of parts of the pod's users. Users are assigned round-robin, first
// to pods, then to parts, so that a ramp-up is spread evenly.
func NewUsers(w *Work, number, parts int64) *Users {
	p := w.Plan
	u := &Users{level: plan.NewSchedule(p.Shape), Think: int64(p.Shape.ThinkTime)}
	u.flat = u.level.FlatFrom()
	mine := Share(int64(math.Ceil(u.level.Peak())), int64(p.Pods), int64(w.Pod))
	for i := number; i < mine; i += parts {
		u.Schedule(&Turn{User: i*int64(p.Pods) + int64(w.Pod)}, 0)
	}
	return u
}

// Schedule makes the user's next turn due at the instant at, or when the user is next active,
// whichever is later.
func (u *Users) Schedule(t *Turn, at int64) {
	if t.Due = u.level.WhenAbove(float64(t.User), at); t.Due != math.MaxInt64 {
		u.Idle.push(t)
	}
}

// Active reports whether the user is part of the load at the instant at.
func (u *Users) Active(t *Turn, at int64) bool {
	if at >= u.flat {
		return u.level.Final() > float64(t.User)
	}
	return u.level.WhenAbove(float64(t.User), at) <= at
}

// Turns is a binary min-heap of users, ordered by due time.
type Turns []*Turn

func (h *Turns) push(t *Turn) {
	*h = append(*h, t)
	q := *h
	for i := len(q) - 1; i > 0; {
		parent := (i - 1) / 2
		if q[parent].Due <= q[i].Due {
			break
		}
		q[parent], q[i] = q[i], q[parent]
		i = parent
	}
}

// Pop removes and returns the user whose turn is due first; there must be one.
func (h *Turns) Pop() *Turn {
	q := *h
	first, end := q[0], len(q)-1
	q[0] = q[end]
	q[end] = nil
	q = q[:end]
	*h = q
	for i := 0; ; {
		least, left, right := i, 2*i+1, 2*i+2
		if left < end && q[left].Due < q[least].Due {
			least = left
		}
		if right < end && q[right].Due < q[least].Due {
			least = right
		}
		if least == i {
			return first
		}
		q[least], q[i] = q[i], q[least]
		i = least
	}
}
