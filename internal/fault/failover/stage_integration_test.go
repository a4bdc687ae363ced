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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/sentinel"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// errOperatorCrashed is the result of calls of an operator that has crashed.
var errOperatorCrashed = errors.New("the operator crashed")

// crashingServers forwards commands until its operator crashes: before one of the commands that change something is
// sent, or after it was carried out.
type crashingServers struct {
	topology.Servers
	mu        sync.Mutex
	callsLeft int  // number of changing commands until the crash; negative = no crash
	unsent    bool // the crash is before the last of them is sent
	crashed   bool
	before    func()   // called before the first of them
	log       []string // the commands that changed something, as they were carried out
}

func changes(command []any) bool {
	words := strings.ToUpper(fmt.Sprintln(command...))
	for _, start := range []string{
		"SENTINEL FAILOVER", "CLUSTER FAILOVER", "FAILOVER", "REPLICAOF", "CLIENT PAUSE",
		"CLIENT UNPAUSE", "CONFIG REWRITE",
	} {
		if strings.HasPrefix(words, start+" ") || strings.HasPrefix(words, start+"\n") {
			return !strings.Contains(words, strings.ToUpper(unknownToAll))
		}
	}
	return false
}

func (m *crashingServers) Do(ctx context.Context, address string, login redis.Login, command ...any) (any, error) {
	if !changes(command) {
		if m.hasCrashed() {
			return nil, errOperatorCrashed
		}
		return m.Servers.Do(ctx, address, login, command...)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.callsLeft == 1
	if m.callsLeft > 0 {
		m.callsLeft--
	}
	if m.crashed = m.crashed || last && m.unsent; m.crashed {
		return nil, errOperatorCrashed
	}
	if m.before != nil {
		m.before()
		m.before = nil
	}
	reply, err := m.Servers.Do(ctx, address, login, command...)
	if err == nil {
		m.log = append(m.log, strings.TrimSpace(fmt.Sprintln(command...)))
	}
	if m.crashed = last; m.crashed {
		return nil, errOperatorCrashed
	}
	return reply, err
}

func (m *crashingServers) hasCrashed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.crashed
}

func (m *crashingServers) Ask(ctx context.Context, address string, login redis.Login) (topology.Server, error) {
	if m.hasCrashed() {
		return topology.Server{}, errOperatorCrashed
	}
	return m.Servers.Ask(ctx, address, login)
}

// sent are the commands that were carried out and begin with some words.
func (m *crashingServers) sent(words string) (found []string) {
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
	servers    *crashingServers
	sentinels  []string
	atSentinel redis.Login
	master     string
	pods       map[string]string // by address
	ahead      time.Duration     // added to the time of injectors
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
	s.servers = &crashingServers{Servers: s.Real, callsLeft: -1}
	return s
}

func (s *failoverStage) deps() contract.Deps {
	deps := faulttest.On(s.Stage.Deps(), faulttest.ByPods(map[string]string{"app": "redis"}))
	deps.Servers = s.Confine(s.servers)
	deps.Sentinels = sentinel.Set{
		Addresses:  s.sentinels,
		Login:      s.atSentinel,
		MasterName: s.master,
		Servers:    deps.Servers,
	}
	return deps
}

func failingOver(method v1alpha1.FailoverMethod, mode v1alpha1.FailoverMode) *v1alpha1.RedisFaultSpec {
	return &v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{
			Type:     v1alpha1.FaultFailover,
			Failover: &v1alpha1.Failover{Method: method, Mode: mode, Timeout: metav1.Duration{Duration: 20 * time.Second}},
		},
		Select: v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary},
	}
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
func (s *failoverStage) prepare(
	spec *v1alpha1.RedisFaultSpec, server *redistest.Server,
) (*v1alpha1.FaultTarget, error) {
	s.T.Helper()
	selector := v1alpha1.FaultSelector{Role: v1alpha1.RoleAny, Mode: v1alpha1.SelectAll}
	found, err := guard.Choose(s.T.Context(), s.deps().Redis, &v1alpha1.RedisFaultSpec{Select: selector},
		contract.Traits{})
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
	await.Until(s.T, "a record of "+server.Address(), func() (err error) {
		target, err = s.prepare(spec, server)
		return err
	})
	return target
}

// injector returns a new injector, as after a restart of the operator.
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

// injectOnce calls Inject once with a new injector, and stores the record unless the operator crashed. done reports
// whether the injection is complete.
func (s *failoverStage) injectOnce(spec *v1alpha1.RedisFaultSpec, target *v1alpha1.FaultTarget) (done bool, err error) {
	s.T.Helper()
	work := target.DeepCopy()
	before := metav1.NowMicro()
	err = faulttest.Called(s.injector(spec).Inject(s.T.Context(), work))
	if s.servers.hasCrashed() {
		s.servers = &crashingServers{Servers: s.Real, callsLeft: -1, log: s.servers.log}
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

// inject calls Inject as the controller does, until it is complete. Refusals are retried, as the controller does for 30
// s.
func (s *failoverStage) inject(spec *v1alpha1.RedisFaultSpec, target *v1alpha1.FaultTarget) time.Duration {
	s.T.Helper()
	begin := time.Now()
	await.Until(s.T, "the failover is complete", func() error {
		done, err := s.injectOnce(spec, target)
		if err == nil && !done {
			err = errors.New("in progress")
		}
		return err
	})
	return time.Since(begin)
}

// expectEffect waits for an effect whose evidence contains all the words: nodes learn of a change with a delay.
func (s *failoverStage) expectEffect(
	spec *v1alpha1.RedisFaultSpec, target *v1alpha1.FaultTarget, want v1alpha1.Effect, wantText ...string,
) {
	s.T.Helper()
	await.Until(s.T, "the effect", func() error {
		effect, evidence := s.injector(spec).Effect(s.T.Context(), target)
		if effect != want {
			return fmt.Errorf("%s: %s", effect, evidence)
		}
		for _, word := range wantText {
			if !strings.Contains(evidence, word) {
				return fmt.Errorf("got evidence %q, want one that contains %q", evidence, word)
			}
		}
		s.T.Log(evidence)
		return nil
	})
}

func (s *failoverStage) expectRevert(spec *v1alpha1.RedisFaultSpec, target *v1alpha1.FaultTarget) {
	s.T.Helper()
	await.Until(s.T, "the fault is reverted", func() error {
		return faulttest.Called(s.injector(spec).Revert(s.T.Context(), target))
	})
}

// primaryOf returns the only server with role primary; the test fails if there are several or none.
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

// replicates waits until a write reaches this number of replicas: a new replica is reported as online before it
// receives writes.
func replicates(t *testing.T, primary *redistest.Server, replicas int64) {
	t.Helper()
	await.Until(t, "the replicas follow", func() error {
		primary.Do("set", "before", "the failover")
		if n := primary.Do("wait", replicas, 1000).(int64); n < replicas {
			return fmt.Errorf("%d of %d", n, replicas)
		}
		return nil
	})
}

// pinned writes unique keys to one server, whatever its role, until it refuses them.
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
			await.Pass(time.Millisecond, "the rate of the writes")
		}
	}()
	return p
}

// lostAt returns the number of acknowledged writes that are missing at the new primary.
func (p *pinned) lostAt(t *testing.T, primary *redistest.Server) (lost, acknowledged int) {
	t.Helper()
	await.Chan(t, "the old primary takes no more writes", p.ended)
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
