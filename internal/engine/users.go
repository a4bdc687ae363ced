package engine

import (
	"math"

	"github.com/redquake/redquake/internal/plan"
)

// users are virtual users. A user sends one batch per turn; after the batch's last reply it pauses for the think time, then its next turn is due.
type users struct {
	level plan.Schedule // how many are active, over all pods
	flat  int64         // instant after which the level is constant
	think int64
	idle  turnHeap // ordered by due time
}

// turn is one virtual user and the state of its current turn.
type turn struct {
	user int64 // number over all pods: the user is active while the level is above it
	due  int64 // of the next turn
	left int   // requests of the current turn without an outcome
}

// newUsers returns part number of parts of the pod's users. Users are assigned round-robin, first to pods, then to parts, so that a ramp-up is
// spread evenly.
func newUsers(w *work, number, parts int64) *users {
	p := w.plan
	u := &users{level: plan.NewSchedule(p.Shape), think: int64(p.Shape.ThinkTime)}
	u.flat = u.level.FlatFrom()
	mine := share(int64(math.Ceil(u.level.Peak())), int64(p.Pods), int64(w.pod))
	for i := number; i < mine; i += parts {
		u.schedule(&turn{user: i*int64(p.Pods) + int64(w.pod)}, 0)
	}
	return u
}

// schedule makes the user's next turn due at the instant at, or when the user is next active, whichever is later.
func (u *users) schedule(t *turn, at int64) {
	if t.due = u.level.WhenAbove(float64(t.user), at); t.due != math.MaxInt64 {
		u.idle.push(t)
	}
}

// active reports whether the user is part of the load at the instant at.
func (u *users) active(t *turn, at int64) bool {
	if at >= u.flat {
		return u.level.Final() > float64(t.user)
	}
	return u.level.WhenAbove(float64(t.user), at) <= at
}

// turnHeap is a binary min-heap of users, ordered by due time.
type turnHeap []*turn

func (h *turnHeap) push(t *turn) {
	*h = append(*h, t)
	q := *h
	for i := len(q) - 1; i > 0; {
		parent := (i - 1) / 2
		if q[parent].due <= q[i].due {
			break
		}
		q[parent], q[i] = q[i], q[parent]
		i = parent
	}
}

func (h *turnHeap) pop() *turn {
	q := *h
	first, end := q[0], len(q)-1
	q[0] = q[end]
	q[end] = nil
	q = q[:end]
	*h = q
	for i := 0; ; {
		least, left, right := i, 2*i+1, 2*i+2
		if left < end && q[left].due < q[least].due {
			least = left
		}
		if right < end && q[right].due < q[least].due {
			least = right
		}
		if least == i {
			return first
		}
		q[least], q[i] = q[i], q[least]
		i = least
	}
}
