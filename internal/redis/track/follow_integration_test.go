//go:build integration

package track

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Run(m)) }

// security is how a test's servers are protected, and how the tracker logs in to them.
type security struct {
	name            string
	servers         redistest.Options
	sentinels       redistest.SentinelOptions // only the login
	login, sentinel LoginFunc
}

// securities are no security, and TLS with client certificates and ACL users that have only the documented rights.
func securities(t *testing.T) []security {
	a := redistest.NewAuthority(t)
	as := func(user, password string) LoginFunc {
		return func() (redis.Login, error) {
			return redis.Login{Username: user, Password: password, TLS: a.Client("client")}, nil
		}
	}
	return []security{
		{name: "plain"},
		{
			name: "secured",
			servers: redistest.Options{
				TLS: a, Password: "admin",
				Users: []string{"app on >secret ~* -@all +@read +@write +@connection +role +cluster|slots"},
			},
			sentinels: redistest.SentinelOptions{
				SentinelPassword: "guard",
				SentinelUsers:    []string{"watcher on >look &* -@all +@connection +sentinel +subscribe"},
			},
			login: as("app", "secret"), sentinel: as("watcher", "look"),
		},
	}
}

// eachSecurity runs a test for each of them, with each release.
func eachSecurity(t *testing.T, test func(t *testing.T, s security)) {
	redistest.Each(t, func(t *testing.T) {
		t.Parallel()
		for _, s := range securities(t) {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				test(t, s)
			})
		}
	})
}

// logger writes to the test.
func logger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// follow detects the kind, which must be want, and starts a tracker.
func follow(t *testing.T, target Target, want topology.Kind) Tracker {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	target.After, target.Log = time.After, logger(t)
	kind, err := Detect(ctx, target)
	if err != nil || kind != want {
		t.Fatalf("detected %q, %v, not %s", kind, err, want)
	}
	tracker, err := Start(ctx, target, kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tracker.Close)
	return tracker
}

// until waits for a map in which check finds no error, and returns how long it took.
func until(t *testing.T, tracker Tracker, what string, check func(*topology.Map) error) {
	t.Helper()
	begin := time.Now()
	await.Until(t, what, func() error { return check(tracker.Map()) })
	t.Logf("%s: after %s", what, time.Since(begin).Round(time.Millisecond))
}

// layout checks that a shard is exactly this.
func layout(shard int, primary *redistest.Server, replicas ...*redistest.Server) func(*topology.Map) error {
	var want []string
	for _, r := range replicas {
		want = append(want, r.Address())
	}
	slices.Sort(want)
	return func(m *topology.Map) error {
		s := m.Shards[shard]
		if s.Primary != primary.Address() || !slices.Equal(s.Replicas, want) || m.Problem != "" {
			return fmt.Errorf("shard %d is %+v (%s), want primary %s, replicas %v", shard, s, m.Problem, primary.Address(), want)
		}
		return nil
	}
}

func TestSentinelFailover(t *testing.T) {
	eachSecurity(t, func(t *testing.T, s security) {
		o := s.sentinels
		o.Options, o.DownAfter, o.FailoverTimeout = s.servers, 2*time.Second, 2*time.Second
		d := redistest.NewSentinel(t, 2, o)
		tracker := follow(t, Target{Sentinels: d.SentinelAddresses()[:1], Login: s.login, SentinelLogin: s.sentinel},
			topology.KindSentinel)
		until(t, tracker, "the layout at first", layout(0, d.Primary, d.Replicas...))
		if id := tracker.Map().Shards[0].ID; id != redistest.MasterName {
			t.Errorf("the shard's name is %q", id)
		}
		changes := make(chan *topology.Map, 100)
		tracker.OnChange(func(m *topology.Map) { changes <- m })

		d.FailoverAndWait()
		until(t, tracker, "SENTINEL FAILOVER is followed", func(m *topology.Map) error {
			if m.Shards[0].Primary == d.Primary.Address() {
				return fmt.Errorf("still %s", m.Shards[0].Primary)
			}
			return nil
		})
		second := d.Find(tracker.Map().Shards[0].Primary)
		if now := d.CurrentPrimary(); now != second {
			t.Fatalf("the tracker reports %s, the sentinel %s", second.Address(), now.Address())
		}
		for m := range changes { // the first may be the initial map
			if m.Shards[0].Primary == second.Address() {
				break
			}
		}
		settled(t, tracker, d, "all follow the new one")
		d.WaitSettled(2)

		second = d.CurrentPrimary() // on a busy machine the sentinels may have failed over once more
		second.Kill()
		until(t, tracker, "the kill of the primary is followed", func(m *topology.Map) error {
			if p := m.Shards[0].Primary; p == second.Address() || slices.Contains(m.Shards[0].Replicas, second.Address()) {
				return fmt.Errorf("still %+v", m.Shards[0])
			}
			return nil
		})
		second.Restart()
		settled(t, tracker, d, "the killed one is back as a replica")

		added := d.AddReplica(d.CurrentPrimary())
		settled(t, tracker, d, "a replica is added")
		d.RemoveReplica(added)
		settled(t, tracker, d, "a replica is removed")
	})
}

// settled waits until the tracker shows the primary that the sentinels name, and all other servers as its replicas.
func settled(t *testing.T, tracker Tracker, d *redistest.Sentinel, what string) {
	t.Helper()
	until(t, tracker, what, func(m *topology.Map) error {
		primary := d.CurrentPrimary()
		others := slices.DeleteFunc(d.Servers(), func(s *redistest.Server) bool { return s == primary })
		return layout(0, primary, others...)(m)
	})
}

// One sentinel of three is no majority: it must not move the load alone.
func TestSentinelMinority(t *testing.T) { redistest.Each(t, testSentinelMinority) }

func testSentinelMinority(t *testing.T) {
	t.Parallel()
	d := redistest.NewSentinel(t, 1, redistest.SentinelOptions{})
	tracker := follow(t, Target{Sentinels: d.SentinelAddresses(), MasterName: redistest.MasterName}, topology.KindSentinel)
	liar := d.Sentinels[2]
	liar.Do("sentinel", "remove", redistest.MasterName)
	liar.Do("sentinel", "monitor", redistest.MasterName, "127.0.0.1", d.Replicas[0].Port, 1)
	for range 10 {
		tracker.Refresh("test")
		await.Pass(2*restBetween, "the time in which the tracker would follow")
		if p := tracker.Map().Shards[0].Primary; p != d.Primary.Address() {
			t.Fatalf("one sentinel moved the primary to %s", p)
		}
	}
	d.Sentinels[0].Kill()
	d.Sentinels[1].Kill()
	until(t, tracker, "the loss of the majority is seen", func(m *topology.Map) error {
		if !strings.Contains(m.Problem, "no majority of the 3 sentinels") {
			return fmt.Errorf("problem: %q", m.Problem)
		}
		return nil
	})
	if p := tracker.Map().Shards[0].Primary; p != d.Primary.Address() {
		t.Fatalf("without a majority the primary became %q", p)
	}
}

// Real sentinels that name a replica, as after servers were told to follow each other, give no primary: that is waited
// for, and said with who names what.
func TestSentinelsNameAReplica(t *testing.T) {
	redistest.Each(t, func(t *testing.T) {
		d := redistest.NewSentinel(t, 1, redistest.SentinelOptions{DownAfter: time.Hour})
		d.Primary.Do("replicaof", "127.0.0.1", fmt.Sprint(d.Replicas[0].Port))
		said := make(chan error, 1)
		target := Target{
			Sentinels:  d.SentinelAddresses(),
			MasterName: redistest.MasterName,
			After:      time.After,
			Trouble: func(err error) {
				select {
				case said <- err:
				default:
				}
			},
		}
		started := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
		defer cancel()
		go func() {
			tracker, err := Start(ctx, target, topology.KindSentinel)
			if err == nil {
				tracker.Close()
			}
			started <- err
		}()
		var what error
		select {
		case what = <-said:
		case err := <-started:
			t.Fatalf("it did not wait for a primary: %v", err)
		}
		watchers := slices.Sorted(slices.Values(target.Sentinels))
		for _, want := range []string{
			"name " + d.Primary.Address() + " as the primary of " + redistest.MasterName + ", but it is a replica of ",
			"(" + strings.Join(watchers, ", ") + " name " + d.Primary.Address() + ")",
		} {
			if !strings.Contains(what.Error(), want) {
				t.Errorf("%v\nwant: %s", what, want)
			}
		}
		d.Primary.Do("replicaof", "no", "one")
		if err := <-started; err != nil {
			t.Error(err)
		}
	})
}

func TestReplicationFailover(t *testing.T) {
	eachSecurity(t, func(t *testing.T, s security) {
		d := redistest.NewReplication(t, 2, s.servers)
		tracker := follow(t, Target{Addresses: d.Addresses()[:2], Login: s.login}, topology.KindReplication)
		until(t, tracker, "the layout at first", layout(0, d.Primary, d.Replicas...))

		second := d.Replicas[1]
		d.FailoverTo(d.Primary, second)
		until(t, tracker, "FAILOVER TO is followed", layout(0, second, d.Primary, d.Replicas[0]))

		// A second primary is a split brain: none is selected.
		d.Replicas[0].Do("replicaof", "no", "one")
		until(t, tracker, "the split is seen", func(m *topology.Map) error {
			if !strings.Contains(m.Problem, "split") || m.Shards[0].Primary != second.Address() {
				return fmt.Errorf("%q, primary %s", m.Problem, m.Shards[0].Primary)
			}
			return nil
		})
		d.Replicas[0].Do("replicaof", "127.0.0.1", fmt.Sprint(second.Port))
		until(t, tracker, "the split is over", layout(0, second, d.Primary, d.Replicas[0]))

		added := d.AddReplica(second)
		until(t, tracker, "a replica is added", layout(0, second, d.Primary, d.Replicas[0], added))
		d.RemoveReplica(added)
		until(t, tracker, "a replica is removed", layout(0, second, d.Primary, d.Replicas[0]))
	})
}

func TestClusterChanges(t *testing.T) {
	eachSecurity(t, func(t *testing.T, s security) {
		d := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{Options: s.servers})
		tracker := follow(t, Target{Addresses: d.Addresses()[:1], Login: s.login}, topology.KindCluster)
		for i, shard := range d.Shards {
			until(t, tracker, fmt.Sprintf("shard %d at first", i), layout(i, shard[0], shard[1]))
		}
		first := tracker.Map()
		if n := first.Shards[0].Slots + first.Shards[1].Slots + first.Shards[2].Slots; n != topology.SlotCount ||
			len(first.Primaries()) != 3 || len(first.Replicas()) != 3 {
			t.Errorf("%d slots in %+v", n, first.Shards)
		}

		d.Failover(d.Shards[1][1])
		tracker.Refresh("test")
		until(t, tracker, "CLUSTER FAILOVER is followed", layout(1, d.Shards[1][1], d.Shards[1][0]))
		if id := tracker.Map().Shards[1].ID; id != first.Shards[1].ID {
			t.Errorf("the shard changed its name from %s to %s", first.Shards[1].ID, id)
		}

		d.Shards[1][1].Stop() // so that it cannot say that it lost its slots
		d.Failover(d.Shards[1][0], "takeover")
		until(t, tracker, "CLUSTER FAILOVER TAKEOVER is followed", layout(1, d.Shards[1][0]))
		d.Shards[1][1].Cont()
		until(t, tracker, "the one that hung is back as a replica", layout(1, d.Shards[1][0], d.Shards[1][1]))

		slot := 100
		d.MigrateSlot(slot, d.Shards[2][0])
		until(t, tracker, "the migration of a slot is followed", func(m *topology.Map) error {
			if n, ok := m.ShardOf(uint16(slot)); !ok || n != 2 {
				return fmt.Errorf("slot %d is of shard %d, %t", slot, n, ok)
			}
			return nil
		})
		d.WaitHealthy()

		d.Shards[0][0].Kill()
		until(t, tracker, "the kill of a primary is followed", func(m *topology.Map) error {
			return layout(0,
				d.Shards[0][1])(m)
		})
		d.Shards[0][0].Restart()
		until(t, tracker, "the killed one is back as a replica", layout(0, d.Shards[0][1], d.Shards[0][0]))
		d.WaitHealthy()

		added := d.AddReplica(2, d.Shards[2][0])
		until(t, tracker, "a replica is added", layout(2, d.Shards[2][0], d.Shards[2][1], added))
		d.RemoveReplica(added)
		until(t, tracker, "a replica is removed", layout(2, d.Shards[2][0], d.Shards[2][1]))
		if n := len(tracker.Map().Shards); n != 3 {
			t.Errorf("there are %d shards at the end", n)
		}
	})
}

// A MOVED of a real cluster takes effect immediately.
func TestClusterMoved(t *testing.T) { redistest.Each(t, testClusterMoved) }

func testClusterMoved(t *testing.T) {
	t.Parallel()
	d := redistest.SharedCluster(t)
	tracker := follow(t, Target{Addresses: d.Addresses()}, topology.KindCluster)
	before := tracker.Map()
	slot := int(d.Shards[0][0].Do("cluster", "keyslot", "k").(int64))
	other := d.Shards[0][0]
	if other == d.Owner(slot) {
		other = d.Shards[1][0]
	}
	err := other.Client().Do(t.Context(), "get", "k").Err()
	w := strings.Fields(fmt.Sprint(err))
	if len(w) != 3 || w[0] != "MOVED" || w[1] != fmt.Sprint(slot) || w[2] != d.Owner(slot).Address() {
		t.Fatalf("another shard's primary answered %v", err)
	}
	tracker.Moved(uint16(slot), w[2])
	if tracker.Map() != before {
		t.Error("got a new map without a change")
	}
}

func TestStartErrors(t *testing.T) { redistest.Each(t, testStartErrors) }

func testStartErrors(t *testing.T) {
	t.Parallel()
	a := redistest.NewAuthority(t)
	server := redistest.NewServer(t, redistest.Options{TLS: a, Password: "admin"})
	d := redistest.NewSentinel(t, 1, redistest.SentinelOptions{Sentinels: 1})
	wrong := func() (redis.Login, error) { return redis.Login{Password: "wrong", TLS: a.Client("client")}, nil }
	nobody := func() (redis.Login, error) { return redis.Login{TLS: a.Client("")}, nil }
	for _, tc := range []struct {
		name   string
		kind   topology.Kind
		target Target
		want   string
	}{
		{"wrong password", topology.KindCluster, Target{Addresses: []string{server.Address()}, Login: wrong}, "WRONGPASS"},
		{
			"no certificate",
			topology.KindReplication,
			Target{Addresses: []string{server.Address()}, Login: nobody},
			"certificate",
		},
		{"no cluster", topology.KindCluster, Target{Addresses: []string{d.Primary.Address()}}, "cluster support disabled"},
		{
			"unknown name",
			topology.KindSentinel,
			Target{Sentinels: d.SentinelAddresses(), MasterName: "other"},
			`no master named "other"`,
		},
		{"no sentinel", topology.KindSentinel, Target{Sentinels: []string{d.Primary.Address()}}, "unknown command"},
		{
			"no listener",
			topology.KindReplication,
			Target{Addresses: []string{"127.0.0.1:1"}},
			"127.0.0.1:1: connect: connection refused",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
			defer cancel()
			tc.target.After, tc.target.Log = time.After, slog.New(&whenLogged{text: tc.want, do: cancel})
			tracker, err := Start(ctx, tc.target, tc.kind)
			if err == nil {
				tracker.Close()
				t.Fatalf("started: %+v", tracker.Map())
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one that contains %q", err, tc.want)
			}
		})
	}
}

// whenLogged calls do when an error with a text is logged.
type whenLogged struct {
	text string
	do   func()
}

func (w *whenLogged) Enabled(context.Context, slog.Level) bool { return true }
func (w *whenLogged) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *whenLogged) WithGroup(string) slog.Handler            { return w }

func (w *whenLogged) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" && strings.Contains(a.Value.String(), w.text) {
			w.do()
		}
		return true
	})
	return nil
}

func TestDetect(t *testing.T) { redistest.Each(t, testDetect) }

func testDetect(t *testing.T) {
	t.Parallel()
	d := redistest.NewSentinel(t, 1, redistest.SentinelOptions{Sentinels: 1})
	alone := redistest.NewServer(t, redistest.Options{})
	// as some proxies are
	mute := redistest.NewServer(t, redistest.Options{
		Config: []string{`rename-command HELLO ""`, `rename-command INFO ""`},
	})
	for _, tc := range []struct {
		addresses []string
		want      topology.Kind
	}{
		{[]string{alone.Address()}, topology.KindStandalone},
		{[]string{mute.Address()}, topology.KindStandalone},
		{d.Addresses(), topology.KindReplication},
		{d.Addresses()[:1], topology.KindStandalone},
		{d.Addresses()[1:], topology.KindStandalone}, // a single replica was requested explicitly
		{d.SentinelAddresses(), topology.KindSentinel},
	} {
		got, err := Detect(t.Context(), Target{Addresses: tc.addresses, After: time.After})
		if err != nil || got != tc.want {
			t.Errorf("%v: %s, %v, not %s", tc.addresses, got, err, tc.want)
		}
	}
	// Several addresses of standalone servers: the first that answers.
	tracker, err := Start(t.Context(), Target{Addresses: []string{"127.0.0.1:1", alone.Address()}, After: time.After},
		topology.KindStandalone)
	if err != nil {
		t.Fatal(err)
	}
	defer tracker.Close()
	if p := tracker.Map().Shards[0].Primary; p != alone.Address() {
		t.Errorf("the primary is %q", p)
	}
}
