package redistest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/testing/await"
)

// MasterName is what the sentinels watch.
const MasterName = "mymaster"

// SentinelOptions are a Replication with sentinels.
type SentinelOptions struct {
	Options                 // of the servers; TLS is the sentinels' too
	Sentinels int           // 0 = 3; the quorum is a majority
	DownAfter time.Duration // 0 = 1 s
	// what a failover may take, and half of the time between two of them; 0 = 5 s, with DefaultPeriods 10 s
	FailoverTimeout time.Duration
	// leave Sentinel its own pace, for what measures it; without it sentinels notice and announce changes fast
	DefaultPeriods   bool
	SentinelPassword string   // of the sentinels' default user
	SentinelUsers    []string // further ACL users of the sentinels
}

// Sentinel is a Replication that sentinels watch.
type Sentinel struct {
	*Replication
	Sentinels []*Server
}

// NewSentinel starts servers and sentinels and waits until a failover would succeed.
func NewSentinel(t testing.TB, replicas int, o SentinelOptions) *Sentinel {
	t.Helper()
	s := &Sentinel{Replication: NewReplication(t, replicas, o.Options)}
	s.watch("127.0.0.1", s.Primary.Port, replicas, o)
	return s
}

// NewWatchers starts sentinels for the servers of somebody else, and waits until a failover would succeed. Of the
// result only the sentinels can be used.
func NewWatchers(t testing.TB, primary string, port, replicas int, o SentinelOptions) *Sentinel {
	t.Helper()
	s := &Sentinel{Replication: &Replication{t: t}}
	s.watch(primary, port, replicas, o)
	return s
}

// watch starts the sentinels.
func (s *Sentinel) watch(primary string, port, replicas int, o SentinelOptions) {
	t := s.t
	t.Helper()
	if o.Sentinels == 0 {
		o.Sentinels = 3
	}
	if o.DownAfter == 0 {
		o.DownAfter = time.Second
	}
	if o.FailoverTimeout == 0 {
		o.FailoverTimeout = 5 * time.Second
		if o.DefaultPeriods {
			o.FailoverTimeout = 10 * time.Second
		}
	}
	for range o.Sentinels {
		s.Sentinels = append(s.Sentinels, launch(t, sentinel, Options{
			TLS:      o.TLS,
			Password: o.SentinelPassword,
			Users:    o.SentinelUsers,
		}, func(int) []string {
			lines := []string{
				fmt.Sprintf("sentinel monitor %s %s %d %d", MasterName, primary, port, o.Sentinels/2+1),
				fmt.Sprintf("sentinel down-after-milliseconds %s %d", MasterName, o.DownAfter.Milliseconds()),
				fmt.Sprintf("sentinel failover-timeout %s %d", MasterName, o.FailoverTimeout.Milliseconds()),
			}
			if o.Password != "" {
				lines = append(lines, fmt.Sprintf("sentinel auth-pass %s %s", MasterName, o.Password))
			}
			return lines
		}))
	}
	for _, one := range s.Sentinels {
		if !o.DefaultPeriods {
			one.prepare = func() { hasten(one) }
		}
		one.WaitUp()
	}
	s.WaitSettled(replicas)
}

// hasten shortens the periods of a sentinel: of INFO (10 s), of its announcements (2 s; a primary that was replaced is
// demoted after four of them), of asking the others whether the primary is down for them, too (1 s). A sentinel that
// was not scheduled for two seconds must not go into TILT.
// A replica is promoted only on an INFO that is younger than three periods, so INFO must not be too fast for a busy
// machine.
func hasten(one *Server) {
	one.T.Helper()
	if isBefore7(one.program) { // has no such command
		return
	}
	one.Do("sentinel", "debug", "info-period", 500, "publish-period", 200, "ask-period", 300, "tilt-trigger", 30_000)
}

// SentinelAddresses are host:port of all sentinels.
func (s *Sentinel) SentinelAddresses() []string {
	return addresses(s.Sentinels)
}

// WaitSettled waits until every running sentinel is connected to the others, lists the given number of replicas that
// are up, and no failover is under way. A sentinel that is not connected gets no votes for a failover.
func (s *Sentinel) WaitSettled(replicas int) {
	s.t.Helper()
	await.Until(s.t, "the sentinels are settled", func() error { return s.settled(replicas) })
}

func (s *Sentinel) settled(replicas int) error {
	others := len(s.running()) - 1
	for _, one := range s.running() {
		m, err := one.Client().Do(context.Background(), "sentinel", "master", MasterName).Result()
		if err != nil {
			return err
		}
		if flags := Pairs(m)["flags"]; flags != "master" {
			return fmt.Errorf("%s: flags %s", one.Address(), flags)
		}
		if err := lists(one, "sentinels", others, func(f map[string]string) bool {
			return f["flags"] == "sentinel"
		}); err != nil {
			return err
		}
		if err := lists(one, "replicas", replicas, func(f map[string]string) bool {
			return f["flags"] == "slave" && f["master-link-status"] == "ok" && f["role-reported"] == "slave"
		}); err != nil {
			return err
		}
	}
	return nil
}

// lists returns an error unless a sentinel lists at least want sentinels or replicas that are up.
func lists(one *Server, what string, want int, up func(map[string]string) bool) error {
	list, err := one.Client().Do(context.Background(), "sentinel", what, MasterName).Slice()
	if err != nil {
		return err
	}
	got := 0
	for _, entry := range list {
		if up(Pairs(entry)) {
			got++
		}
	}
	if got < want {
		return fmt.Errorf("%s: %d of %d %s are up", one.Address(), got, want, what)
	}
	return nil
}

// Failover repeats SENTINEL FAILOVER until a sentinel begins one: right after a start or another failover they refuse.
func (s *Sentinel) Failover() {
	s.t.Helper()
	await.Until(s.t, "SENTINEL FAILOVER begins", func() error {
		err := s.Sentinels[0].Client().Do(context.Background(), "sentinel", "failover", MasterName).Err()
		if err != nil && strings.HasPrefix(err.Error(), "INPROG") {
			return nil
		}
		return err
	})
}

// FailoverAndWait fails over and waits until most of the sentinels name another primary, which it returns. It repeats
// the request if the first sentinel aborts the failover, as it does on a busy machine.
func (s *Sentinel) FailoverAndWait() *Server {
	s.t.Helper()
	first, before := s.Sentinels[0], s.CurrentPrimary().Address()
	await.Until(s.t, "a failover", func() error {
		// as soon as the other one is promoted, and until the end of the failover it begins no other
		if named(first) != before {
			return nil
		}
		err := first.Client().Do(context.Background(), "sentinel", "failover", MasterName).Err()
		if err != nil {
			return err
		}
		return errors.New("begun")
	})
	await.Until(s.t, "most sentinels know of the failover", func() error {
		if s.CurrentPrimary().Address() == before {
			return errors.New("they name the old primary")
		}
		return nil
	})
	return s.CurrentPrimary()
}

// CurrentPrimary is the server that most of the running sentinels hold for the primary: they learn of a failover one
// after the other.
func (s *Sentinel) CurrentPrimary() *Server {
	s.t.Helper()
	var most string
	await.Until(s.t, "most sentinels name the same primary", func() error {
		votes, running := map[string]int{}, s.running()
		for _, one := range running {
			most = named(one)
			if votes[most]++; votes[most] > len(running)/2 {
				return nil
			}
		}
		return fmt.Errorf("%v", votes)
	})
	return s.Find(most)
}

// named is the address of the server that a sentinel holds for the primary.
func named(sentinel *Server) string {
	sentinel.T.Helper()
	a := sentinel.Do("sentinel", "get-master-addr-by-name", MasterName).([]any)
	return fmt.Sprintf("%v:%v", a[0], a[1])
}

func (s *Sentinel) running() []*Server {
	return slices.DeleteFunc(slices.Clone(s.Sentinels), func(one *Server) bool { return !one.Running() })
}

// Pairs reads a map of Do, or a list of names and values, as text.
func Pairs(reply any) map[string]string {
	fields := map[string]string{}
	switch r := reply.(type) {
	case map[any]any:
		for k, v := range r {
			fields[fmt.Sprint(k)] = fmt.Sprint(v)
		}
	case []any:
		for i := 0; i+1 < len(r); i += 2 {
			fields[fmt.Sprint(r[i])] = fmt.Sprint(r[i+1])
		}
	}
	return fields
}
