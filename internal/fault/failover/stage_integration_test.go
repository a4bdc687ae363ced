//go:build integration

package failover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/redis"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// errOperatorDied is what a call returns whose operator did not live to see its end.
var errOperatorDied = errors.New("the operator died")

// mortal passes commands on until its operator dies: just before the given one of those that change something is sent, or just after it was
// carried out.
type mortal struct {
	topology.Servers
	mu     sync.Mutex
	lives  int  // commands that change something until it dies; negative = for ever
	unsent bool // it dies before the last of them is sent
	dead   bool
	before func()   // called before the first of them
	log    []string // the commands that changed something, as they were carried out
}

func changes(command []any) bool {
	words := strings.ToUpper(fmt.Sprintln(command...))
	for _, start := range []string{"SENTINEL FAILOVER", "CLUSTER FAILOVER", "FAILOVER", "REPLICAOF", "CLIENT PAUSE", "CLIENT UNPAUSE", "CONFIG REWRITE"} {
		if strings.HasPrefix(words, start+" ") || strings.HasPrefix(words, start+"\n") {
			return !strings.Contains(words, strings.ToUpper(unknownToAll))
		}
	}
	return false
}

func (m *mortal) Do(ctx context.Context, address string, login redis.Login, command ...any) (any, error) {
	if !changes(command) {
		if m.isDead() {
			return nil, errOperatorDied
		}
		return m.Servers.Do(ctx, address, login, command...)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.lives == 1
	if m.lives > 0 {
		m.lives--
	}
	if m.dead = m.dead || last && m.unsent; m.dead {
		return nil, errOperatorDied
	}
	if m.before != nil {
		m.before()
		m.before = nil
	}
	reply, err := m.Servers.Do(ctx, address, login, command...)
	if err == nil {
		m.log = append(m.log, strings.TrimSpace(fmt.Sprintln(command...)))
	}
	if m.dead = last; m.dead {
		return nil, errOperatorDied
	}
	return reply, err
}

func (m *mortal) isDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

func (m *mortal) Ask(ctx context.Context, address string, login redis.Login) (topology.Server, error) {
	if m.isDead() {
		return topology.Server{}, errOperatorDied
	}
	return m.Servers.Ask(ctx, address, login)
}

// sent are the commands that were carried out and begin with some words.
func (m *mortal) sent(words string) (found []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, command := range m.log {
		if strings.HasPrefix(command, words) {
			found = append(found, command)
		}
	}
	return found
}

// failoverStage is a stage whose operators can die, with sentinels or without.
type failoverStage struct {
	*faulttest.Stage
	servers    *mortal
	sentinels  []string
	atSentinel redis.Login
	master     string
	pods       map[string]string // by address
	ahead      time.Duration     // how much later than it is injectors take it to be
}

func newFailoverStage(t *testing.T, servers []*redistest.Server, sentinels ...string) *failoverStage {
	t.Helper()
	s := &failoverStage{Stage: faulttest.NewStage(t, Kinds, guard.Choose), sentinels: sentinels, pods: map[string]string{}}
	s.atSentinel = s.Login
	for i, server := range servers {
		name := fmt.Sprintf("redis-%d", i)
		s.Host(name, server, nil)
		s.pods[server.Address()] = name
	}
	s.servers = &mortal{Servers: s.Real, lives: -1}
	return s
}

func (s *failoverStage) deps() contract.Deps {
	deps := s.Stage.Deps()
	deps.Servers = s.servers
	deps.Sentinels = target.Sentinels{Addresses: s.sentinels, Login: s.atSentinel, MasterName: s.master, Servers: s.servers}
	return deps
}

func failingOver(method v1alpha1.FailoverMethod, mode v1alpha1.FailoverMode) *v1alpha1.RedisFaultSpec {
	return &v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultFailover, Failover: &v1alpha1.Failover{Method: method, Mode: mode, Timeout: metav1.Duration{Duration: 20 * time.Second}}}, Select: v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary}}
}

// asCtl logs in at the servers as a user that has the rights of docs/faults/failover.md.
func (s *failoverStage) asCtl() *failoverStage {
	s.Login.Username, s.Login.Password = "ctl", "pw"
	return s
}

// ctl is that user, in a server's configuration.
func ctl(rights string) redistest.Options {
	return redistest.Options{Users: []string{"ctl on >pw -@all +info +acl|dryrun " + rights}}
}

// prepare makes the record of a server, as the controller does.
func (s *failoverStage) prepare(spec *v1alpha1.RedisFaultSpec, server *redistest.Server) (*v1alpha1.FaultTarget, error) {
	s.T.Helper()
	selector := v1alpha1.FaultSelector{Role: v1alpha1.RoleAny, Mode: v1alpha1.SelectAll}
	found, err := guard.Choose(s.T.Context(), faulttest.On(s.deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis, &v1alpha1.RedisFaultSpec{Select: selector}, contract.Traits{})
	if err != nil {
		s.T.Fatal(err)
	}
	for i := range found {
		if found[i].Address == server.Address() {
			now := metav1.NowMicro()
			found[i].IntendedAt = &now
			return &found[i], s.injector(spec).Preflight(s.T.Context(), &found[i])
		}
	}
	s.T.Fatalf("no target at %s", server.Address())
	return nil, nil
}

// ready waits until a server can be failed over: right after another failover it cannot.
func (s *failoverStage) ready(spec *v1alpha1.RedisFaultSpec, server *redistest.Server) *v1alpha1.FaultTarget {
	s.T.Helper()
	var target *v1alpha1.FaultTarget
	redistest.Wait(s.T, "a record of "+server.Address(), func() (err error) {
		target, err = s.prepare(spec, server)
		return err
	})
	return target
}

// injector is one that another operator process would make.
func (s *failoverStage) injector(spec *v1alpha1.RedisFaultSpec) contract.Injector {
	s.T.Helper()
	injector, err := Kinds.For(spec, s.deps())
	if err != nil {
		s.T.Fatal(err)
	}
	if f, is := injector.(failover); is {
		f.now = func() time.Time { return time.Now().Add(s.ahead) }
		return f
	}
	return injector
}

// live calls Inject once, by a process of its own, and stores what it noted unless it died. done says that the injection is complete.
func (s *failoverStage) live(spec *v1alpha1.RedisFaultSpec, target *v1alpha1.FaultTarget) (done bool, err error) {
	s.T.Helper()
	work := target.DeepCopy()
	before := metav1.NowMicro()
	err = faulttest.Called(s.injector(spec).Inject(s.T.Context(), work))
	if s.servers.isDead() {
		s.servers = &mortal{Servers: s.Real, lives: -1, log: s.servers.log}
		return false, nil
	}
	var steps *faulttest.Pending
	if err == nil || errors.As(err, &steps) {
		*target = *work
		if target.InjectedAt == nil {
			target.InjectedAt = &before
		}
		return err == nil, nil
	}
	return false, err
}

// inject calls Inject as the controller does, until it is complete. Refusals are tried again, as for 30 s they are.
func (s *failoverStage) inject(spec *v1alpha1.RedisFaultSpec, target *v1alpha1.FaultTarget) time.Duration {
	s.T.Helper()
	begin := time.Now()
	redistest.Wait(s.T, "the failover is complete", func() error {
		done, err := s.live(spec, target)
		if err == nil && !done {
			err = errors.New("in progress")
		}
		return err
	})
	return time.Since(begin)
}

// expectEffect waits for an effect whose evidence holds all the words: news need a moment to go round.
func (s *failoverStage) expectEffect(spec *v1alpha1.RedisFaultSpec, target *v1alpha1.FaultTarget, want v1alpha1.Effect, wantText ...string) {
	s.T.Helper()
	redistest.Wait(s.T, "the effect", func() error {
		effect, evidence := s.injector(spec).Effect(s.T.Context(), target)
		if effect != want {
			return fmt.Errorf("%s: %s", effect, evidence)
		}
		for _, word := range wantText {
			if !strings.Contains(evidence, word) {
				return fmt.Errorf("%q does not say %q", evidence, word)
			}
		}
		s.T.Log(evidence)
		return nil
	})
}

func (s *failoverStage) expectRevert(spec *v1alpha1.RedisFaultSpec, target *v1alpha1.FaultTarget) {
	s.T.Helper()
	redistest.Wait(s.T, "the fault is reverted", func() error { return faulttest.Called(s.injector(spec).Revert(s.T.Context(), target)) })
}

// primaryOf is the one that calls itself a primary; the test fails where several do, or none.
func (s *failoverStage) primaryOf(servers []*redistest.Server) *redistest.Server {
	s.T.Helper()
	var found *redistest.Server
	for _, server := range servers {
		if server.Running() && server.Info("role") == "master" {
			if found != nil {
				s.T.Fatalf("%s and %s are both primaries", found.Address(), server.Address())
			}
			found = server
		}
	}
	if found == nil {
		s.T.Fatal("there is no primary")
	}
	return found
}

// replicates waits until a write reaches so many replicas: a new one is held for online before it gets any.
func replicates(t *testing.T, primary *redistest.Server, replicas int64) {
	t.Helper()
	redistest.Wait(t, "the replicas follow", func() error {
		primary.Do("set", "before", "the failover")
		if n := primary.Do("wait", replicas, 1000).(int64); n < replicas {
			return fmt.Errorf("%d of %d", n, replicas)
		}
		return nil
	})
}

// pinned writes unique keys to one server, whatever it is, until it refuses them.
type pinned struct {
	acknowledged []string
	ended        chan struct{}
}

func writeTo(t *testing.T, server *redistest.Server) *pinned {
	t.Helper()
	p := &pinned{ended: make(chan struct{})}
	client := server.Client()
	go func() {
		defer close(p.ended)
		for i := 0; t.Context().Err() == nil; i++ {
			key := fmt.Sprintf("written-%s-%d", server.Address(), i)
			err := client.Set(t.Context(), key, i, 0).Err()
			var network net.Error
			switch {
			case err == nil:
				p.acknowledged = append(p.acknowledged, key)
			case strings.HasPrefix(err.Error(), "READONLY"), strings.HasPrefix(err.Error(), "MOVED"):
				return
			case !errors.As(err, &network):
				continue // the sentinels close connections
			}
			time.Sleep(time.Millisecond)
		}
	}()
	return p
}

// lostAt counts what was acknowledged and is not at the new primary.
func (p *pinned) lostAt(t *testing.T, primary *redistest.Server) (lost, acknowledged int) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(redistest.Patience):
		t.Fatal("the old primary takes writes for ever")
	}
	for _, key := range p.acknowledged {
		n, err := primary.Client().Exists(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			lost++
		}
	}
	return lost, len(p.acknowledged)
}
