package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/resp"
)

// lockServer is a Redis that executes what the lock's users send, in virtual time, and forgets locks when it is told to.
type lockServer struct {
	now    int64
	keys   map[string]lockKey
	fences map[string]int64
}

type lockKey struct {
	token   string
	expires int64
}

// execute performs an encoded command and returns its reply.
func (s *lockServer) execute(t *testing.T, out []byte) resp.Value {
	t.Helper()
	v, err := resp.ReadValue(bufio.NewReader(bytes.NewReader(out)))
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, item := range v.Items {
		words = append(words, item.Text)
	}
	key, token, ttl, script := words[1], words[2], "", ""
	switch {
	case words[0] == "SET":
		ttl = words[5]
	case words[1] == fenceScript:
		script, key, token, ttl = words[1], words[3], words[5], words[6]
	default:
		script, key, token = words[1], words[3], words[4]
		if script == renewScript {
			ttl = words[5]
		}
	}
	at, there := s.keys[key]
	if there && at.expires <= s.now {
		delete(s.keys, key)
		there = false
	}
	millis, _ := strconv.ParseInt(ttl, 10, 64)
	switch {
	case script == "" || script == fenceScript:
		if there {
			return resp.Value{Type: '_'}
		}
		s.keys[key] = lockKey{token, s.now + millis*int64(time.Millisecond)}
		if script == "" {
			return resp.Value{Type: '+', Text: "OK"}
		}
		s.fences[key]++
		return resp.Value{Type: ':', Text: strconv.FormatInt(s.fences[key], 10)}
	case !there || at.token != token:
		return resp.Value{Type: ':', Text: "0"}
	case script == renewScript:
		s.keys[key] = lockKey{token, s.now + millis*int64(time.Millisecond)}
	default:
		delete(s.keys, key)
	}
	return resp.Value{Type: ':', Text: "1"}
}

// lockEvent is a user's request and what became of it.
type lockEvent struct {
	user             int64
	op               int
	decided, at      int64
	sent             int64
	outcome          Outcome
	granted          bool
	counts, executed int64
}

// believed is what the transcript of one user's requests comes to, after the fact: for how long it counted on locks.
func believed(events []lockEvent, ttl, end int64) (spans [][2]int64, lost, expired uint64) {
	from, valid := int64(-1), int64(0)
	leave := func(until int64) {
		spans = append(spans, [2]int64{from, max(from, until)})
		from = -1
	}
	for _, e := range events {
		if from >= 0 && e.decided >= valid {
			expired++
			leave(valid)
		}
		switch {
		case e.op == plan.LockTake && e.outcome == OK && e.granted && e.at < e.sent+ttl:
			from, valid = e.at, e.sent+ttl
		case from < 0 || e.op == plan.LockTake:
		case e.op == plan.LockRelease:
			until := min(e.decided, valid)
			if e.outcome == OK && !e.granted {
				lost++
			}
			leave(until)
		case e.outcome == OK && e.granted:
			valid = e.sent + ttl
		case e.outcome == OK:
			if e.at < valid {
				lost++
			} else {
				expired++
			}
			leave(min(e.at, valid))
		}
	}
	if from >= 0 {
		leave(min(valid, end))
	}
	return spans, lost, expired
}

// Users that a slow, lossy and forgetful server serves: what the workload says of their locks is what the transcript
// of their requests says, and without loss and slowness no two ever hold one lock.
func TestLocksOfUsers(t *testing.T) {
	var all record.Lock
	for seed := range uint64(60) {
		draw := rand.New(rand.NewPCG(seed, 2))
		forgets, loses := seed%4 == 1 || seed%4 == 3, seed%4 >= 2
		const ttl = 100 * time.Millisecond
		spec := &plan.Lock{
			Pods:    1 + draw.IntN(2),
			Locks:   1 + draw.IntN(3),
			TTL:     ttl,
			Hold:    time.Duration(draw.IntN(300)) * time.Millisecond,
			Renew:   ttl / 3,
			Retry:   10 * time.Millisecond,
			Fencing: draw.IntN(2) == 0,
		}
		w := newLock(&plan.Workload{Lock: spec})
		actor := w.Source(0, 1, false).(Actor)
		server := &lockServer{keys: map[string]lockKey{}, fences: map[string]int64{}}
		pods, users := int64(spec.Pods), int64(2+draw.IntN(6))
		due := map[int64]int64{}
		for i := range users {
			due[i*pods] = 0 // of pod 0
		}
		transcript := map[int64][]lockEvent{}
		// a user has one request at a time: it is decided on, executed and answered, of all users by time
		var flying []lockEvent
		now, end := int64(0), int64(10*time.Second)
		requests := map[int64]*Request{}
		for now < end {
			next := lockEvent{at: 1 << 62}
			which := -1
			for i, e := range flying {
				if e.counts < next.at {
					next.at, which = e.counts, i
				}
			}
			starts := int64(-1)
			for user, at := range due {
				if at < next.at || at == next.at && (starts < 0 || user < starts) {
					next.at, starts, which = at, user, -1
				}
			}
			now = max(now, next.at)
			if which < 0 { // a user decides
				delete(due, starts)
				r := &Request{User: starts}
				e := lockEvent{user: starts, decided: now, op: actor.Turn(starts, now)}
				actor.Draw(e.op, r)
				e.sent = now + draw.Int64N(int64(time.Millisecond))
				e.executed = e.sent + draw.Int64N(int64(time.Millisecond))
				if loses && draw.IntN(50) == 0 {
					e.executed += draw.Int64N(int64(2 * ttl)) // slow
				}
				e.at = e.executed + draw.Int64N(int64(time.Millisecond))
				e.counts = e.executed
				requests[starts] = r
				flying = append(flying, e)
				continue
			}
			e := flying[which]
			if e.counts == e.executed && e.counts < e.at { // the server executes it
				server.now = now
				if forgets && draw.IntN(100) == 0 {
					clear(server.keys)
				}
				out, replies := actor.Append(nil, requests[e.user])
				if replies != 1 || !actor.Follows(e.op) {
					t.Fatalf("%d replies", replies)
				}
				reply := server.execute(t, out)
				e.granted = reply.Type == '+' || reply.Type == ':' && reply.Text != "0"
				if loses && draw.IntN(30) == 0 {
					e.outcome = Unknown // its reply is lost
				} else {
					actor.Next(nil, requests[e.user], []resp.Value{reply}, nil)
				}
				e.counts = e.at
				flying[which] = e
				continue
			}
			flying = slices.Delete(flying, which, which+1)
			transcript[e.user] = append(transcript[e.user], e)
			due[e.user] = actor.Ended(requests[e.user], e.outcome, e.sent, e.at)
		}
		told := int64(0)
		for _, events := range transcript {
			told = max(told, events[len(events)-1].at)
		}
		got := w.Guarantees().Lock
		got.FencesBack = nil
		want := &record.Lock{}
		spans := make([][][2]int64, spec.Locks)
		for user, events := range transcript {
			own, lost, expired := believed(events, int64(ttl), told)
			want.Taken += uint64(len(own))
			want.Lost += lost
			want.Expired += expired
			n := user / pods % int64(spec.Locks)
			spans[n] = append(spans[n], own...)
		}
		for _, all := range spans {
			slices.SortFunc(all, func(a, b [2]int64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
			until := int64(-1)
			for _, s := range all {
				switch {
				case until >= 0 && s[0] >= until:
					want.Unheld = max(want.Unheld, s[0]-until)
				case min(s[1], until) > s[0]:
					want.AddOverlap(s[0], min(s[1], until))
				}
				until = max(until, s[1])
			}
			if until >= 0 {
				want.Unheld = max(want.Unheld, told-until)
			}
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		if got.Taken == 0 || !forgets && got.Overlaps > 0 || !forgets && !loses && got.Lost+got.Expired > 0 {
			t.Errorf("seed %d: %+v", seed, got)
		}
		all.Overlaps += got.Overlaps
		all.Lost += got.Lost
		all.Expired += got.Expired
	}
	if all.Overlaps < 100 || all.Lost < 100 || all.Expired < 100 {
		t.Errorf("the histories have too little in them: %+v", all)
	}
}
