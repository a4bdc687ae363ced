package locks

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

	"github.com/redquake/redquake/internal/engine/workload"
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
	v, err := resp.ReadValue(bufio.NewReaderSize(bytes.NewReader(out), 64))
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
	outcome          workload.Outcome
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
		case e.op == plan.LockTake && e.outcome == workload.OK && e.granted && e.at < e.sent+ttl:
			from, valid = e.at, e.sent+ttl
		case from < 0 || e.op == plan.LockTake:
		case e.op == plan.LockRelease:
			until := min(e.decided, valid)
			if e.outcome == workload.OK && !e.granted && e.at < valid {
				lost++
			}
			leave(until)
		case e.outcome == workload.OK && e.granted && e.at < valid:
			valid = e.sent + ttl
		case e.outcome == workload.OK:
			if !e.granted && e.at < valid {
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
	for seed := range uint64(24) {
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
		w, err := New(&plan.Workload{Lock: spec}, false)
		if err != nil {
			t.Fatal(err)
		}
		actor := w.Source(0, 1, false).(workload.Actor)
		server := &lockServer{keys: map[string]lockKey{}, fences: map[string]int64{}}
		pods, users := int64(spec.Pods), int64(2+draw.IntN(6))
		due := map[int64]int64{}
		for i := range users {
			due[i*pods] = 0 // of pod 0
		}
		transcript := map[int64][]lockEvent{}
		// a user has one request at a time: it is decided on, executed and answered, of all users by time
		var flying []lockEvent
		now, end := int64(0), int64(4*time.Second)
		requests := map[int64]*workload.Request{}
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
				r := &workload.Request{User: starts}
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
					e.outcome = workload.Unknown // its reply is lost
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
	if all.Overlaps < 20 || all.Lost < 20 || all.Expired < 20 {
		t.Errorf("the histories have too little in them: %+v", all)
	}
}

// actorOf are users of one lock.
func actorOf(t *testing.T, spec plan.Lock, resends bool) (*Workload, workload.Actor) {
	t.Helper()
	spec.Pods, spec.Locks = 1, 1
	w, err := New(&plan.Workload{Lock: &spec}, resends)
	if err != nil {
		t.Fatal(err)
	}
	return w, w.Source(0, 1, false).(workload.Actor)
}

// does has a user do what it wants to at an instant, be answered yes or no, and be told it at another.
func does(a workload.Actor, user, decided, told time.Duration, op int, reply string) {
	r := &workload.Request{User: int64(user)}
	if got := a.Turn(r.User, int64(decided)); got != op {
		panic(got)
	}
	a.Draw(op, r)
	a.Append(nil, r)
	a.Next(nil, r, []resp.Value{{Type: '+', Text: reply}}, nil)
	a.Ended(r, workload.OK, int64(decided), int64(told))
}

const ms = time.Millisecond

var second = plan.Lock{TTL: time.Second, Hold: 300 * ms, Renew: 200 * ms, Retry: 10 * ms}

// A user that has decided to give its lock up does not count on it, whether its release is ever sent or not.
func TestReleaseThatIsNotSent(t *testing.T) {
	w, a := actorOf(t, second, false)
	does(a, 0, 0, 1*ms, plan.LockTake, "OK")
	if op := a.Turn(0, int64(301*ms)); op != plan.LockRelease {
		t.Fatal(op)
	}
	does(a, 1, 500*ms, 501*ms, plan.LockTake, "OK")
	does(a, 1, 801*ms, 802*ms, plan.LockRelease, "1")
	if got := w.Guarantees().Lock; got.Overlaps != 0 || got.Taken != 2 {
		t.Errorf("%+v", got)
	}
}

// A user whose renewal is answered after its TTL could not count on its lock any more by then.
func TestLateRenewal(t *testing.T) {
	w, a := actorOf(t, plan.Lock{TTL: time.Second, Hold: time.Minute, Renew: 600 * ms, Retry: 10 * ms}, false)
	does(a, 0, 0, 1*ms, plan.LockTake, "OK")
	does(a, 1, 1010*ms, 1011*ms, plan.LockTake, "OK")
	does(a, 0, 600*ms, 1550*ms, plan.LockRenew, "1")
	if got := w.Guarantees().Lock; got.Overlaps != 0 || got.Expired != 1 {
		t.Errorf("%+v", got)
	}
}

// A release that is answered that the lock is gone tells of a loss, unless the client may have sent it twice, or the
// answer comes after the TTL.
func TestReleaseOfWhatIsGone(t *testing.T) {
	for resends, lost := range map[bool]uint64{false: 1, true: 0} {
		w, a := actorOf(t, second, resends)
		does(a, 0, 0, 1*ms, plan.LockTake, "OK")
		does(a, 0, 301*ms, 302*ms, plan.LockRelease, "0")
		does(a, 0, 400*ms, 401*ms, plan.LockTake, "OK")
		does(a, 0, 701*ms, 1402*ms, plan.LockRelease, "0") // its TTL has passed meanwhile
		if got := w.Guarantees().Lock; got.Lost != lost || got.Expired != 0 || got.Taken != 2 {
			t.Errorf("resends %v: %+v", resends, got)
		}
	}
}

// A success whose reply nobody read says neither that a lock was taken, nor that it is gone.
func TestReplyThatIsNotRead(t *testing.T) {
	w, a := actorOf(t, plan.Lock{TTL: time.Second, Hold: time.Minute, Renew: 200 * ms, Retry: 10 * ms}, false)
	r := &workload.Request{}
	a.Draw(a.Turn(0, 0), r)
	a.Ended(r, workload.OK, 0, int64(ms))
	does(a, 0, 11*ms, 12*ms, plan.LockTake, "OK")
	a.Draw(a.Turn(0, int64(212*ms)), r)
	a.Ended(r, workload.OK, int64(212*ms), int64(213*ms))
	does(a, 0, 230*ms, 231*ms, plan.LockRenew, "1")
	if got := w.Guarantees().Lock; got.Taken != 1 || got.Lost != 0 || got.Expired != 0 {
		t.Errorf("%+v", got)
	}
}

// Only who took the lock waits for replicas. Where too few have it in time, it is given up, and was never counted on.
func TestWaitForReplicas(t *testing.T) {
	for replicas, want := range map[string]record.Lock{"1": {Unreplicated: 1}, "2": {Taken: 1}} {
		w, a := actorOf(t, plan.Lock{
			TTL: time.Second, Hold: time.Minute, Renew: 200 * ms, Retry: 10 * ms, WaitReplicas: 2, Wait: 250 * ms,
		}, false)
		loser := &workload.Request{User: 1}
		a.Draw(a.Turn(1, 0), loser)
		if _, more := a.Next(nil, loser, []resp.Value{{Type: '_'}}, nil); more != 0 {
			t.Error("a user without the lock waits for replicas")
		}
		a.Ended(loser, workload.OK, 0, int64(ms))
		r := &workload.Request{}
		a.Draw(a.Turn(0, 0), r)
		out, more := a.Next(nil, r, []resp.Value{{Type: '+', Text: "OK"}}, nil)
		if again, _ := a.Append(nil, r); more != 1 || string(out) != string(resp.AppendCommand(nil, "WAIT", "2", "250")) ||
			string(again) != string(out) {
			t.Errorf("%q, and %q", out, again)
		}
		a.Next(nil, r, []resp.Value{{Type: ':', Text: replicas}}, nil)
		a.Ended(r, workload.OK, 0, int64(2*ms))
		if op := a.Turn(0, int64(3*ms)); (op == plan.LockRelease) != (replicas == "1") {
			t.Errorf("with %s replicas it does %d", replicas, op)
		}
		if got := w.Guarantees().Lock; got.Taken != want.Taken || got.Unreplicated != want.Unreplicated {
			t.Errorf("with %s replicas: %+v", replicas, got)
		}
	}
}
