//go:build integration

package process

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

func killOf(clients v1alpha1.ClientType) *v1alpha1.RedisFaultSpec {
	return &v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{Type: v1alpha1.FaultClientKill, ClientKill: &v1alpha1.ClientKill{Type: clients}},
	}
}

// connections opens raw connections that have sent a command. They are closed when the test ends.
func connections(t *testing.T, server *redistest.Server, n int, wantText string) []net.Conn {
	t.Helper()
	var all []net.Conn
	for range n {
		c, err := net.Dial("tcp", server.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_, _ = c.Write([]byte(wantText + "\r\n"))
		if _, err := c.Read(make([]byte, 256)); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// closedByServer returns the number of connections that the server has closed: the others answer.
func closedByServer(t *testing.T, all []net.Conn) int {
	t.Helper()
	n := 0
	for _, c := range all {
		_ = c.SetDeadline(time.Now().Add(await.Limit))
		_, err := c.Write([]byte("PING\r\n"))
		if err == nil {
			_, err = c.Read(make([]byte, 256))
		}
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout():
			t.Errorf("%s neither answers nor ends the connection", c.RemoteAddr())
		case err != nil:
			n++
		}
	}
	return n
}

// Connections of the type are closed once. Others, and later ones, stay open, however often and by which process Inject
// is called.
func TestClientKill(t *testing.T) { redistest.Each(t, testClientKill) }

func testClientKill(t *testing.T) {
	t.Parallel()
	s, server := faulttest.NewHostedStage(t, Kinds, guard.Choose)
	for _, tc := range []struct {
		kind              v1alpha1.ClientType
		wantText, another string
	}{{v1alpha1.ClientNormal, "PING", "SUBSCRIBE a"}, {v1alpha1.ClientPubSub, "SUBSCRIBE a", "PING"}} {
		t.Run(string(tc.kind), func(t *testing.T) {
			spec := killOf(tc.kind)
			hit, spared := connections(t, server, 5, tc.wantText), connections(t, server, 3, tc.another)
			injector, target := s.Aim(spec)
			begun(t, injector, target, false)
			checkEffect(t, injector, target, v1alpha1.EffectNotObserved, "still")
			inject(t, injector, target)
			if n := closedByServer(t, hit); n != len(hit) {
				t.Errorf("%d of %d connections were closed", n, len(hit))
			}
			later := connections(t, server, 4, tc.wantText)
			inject(t, injector, target)
			checkEffect(t, injector, target, v1alpha1.EffectConfirmed, "new ones")
			// An operator that crashed before it stored the number determines it again.
			stored := target.DeepCopy()
			record := faulttest.Recorded[killRecord](t, stored)
			record.Killed = nil
			faulttest.Save(t, stored, record)
			injector = s.Reborn(spec)
			begun(t, injector, stored, true)
			inject(t, injector, stored)
			checkEffect(t, injector, stored, v1alpha1.EffectConfirmed, "unknown number")
			revertFully(t, injector, stored)
			if n := closedByServer(t, later) + closedByServer(t, spared); n != 0 {
				t.Errorf("%d connections of other types were closed, want none", n)
			}
			for _, c := range append(later, spared...) {
				_ = c.Close()
			}
		})
	}
}

// A replica whose connection was killed reconnects with a partial resynchronization.
func TestClientKillOfReplicas(t *testing.T) { redistest.Each(t, testClientKillOfReplicas) }

func testClientKillOfReplicas(t *testing.T) {
	t.Parallel()
	s, r := faulttest.NewStage(t, Kinds, guard.Choose), redistest.SharedReplication(t, 1)
	s.Host("redis-0", r.Primary, nil)
	injector, target := s.Aim(killOf(v1alpha1.ClientReplica))
	before := r.Primary.Info("sync_partial_ok")
	inject(t, injector, target)
	checkEffect(t, injector, target, v1alpha1.EffectConfirmed, "closed 1 connections of type replica")
	await.Until(t, "the replica is back", func() error {
		if r.Primary.Info("connected_slaves") == "1" && r.Primary.Info("sync_partial_ok") != before {
			return nil
		}
		return errors.New("not yet")
	})
}

func TestClientKillRefused(t *testing.T) { redistest.Each(t, testClientKillRefused) }

func testClientKillRefused(t *testing.T) {
	t.Parallel()
	s := faulttest.NewStage(t, Kinds, guard.Choose)
	server := redistest.NewServer(t, redistest.Options{Users: []string{
		"lists on >pw ~* +info +ping +acl|dryrun +client|list", "kills on >pw ~* +info +ping +acl|dryrun +client|kill",
	}})
	s.Host("redis-0", server, nil)
	if _, _, err := s.TryAim(killOf(v1alpha1.ClientReplica)); faulttest.ProblemOf(t, err).Lasting ||
		!strings.Contains(err.Error(), "no connection of type replica") {
		t.Errorf("nothing to kill: %v", err)
	}
	for user, wantText := range map[string]string{"lists": "+client|kill", "kills": "+client|list"} {
		s.Login = redis.Login{Username: user, Password: "pw", Timeout: faulttest.Patient}
		_, _, err := s.TryAim(killOf(v1alpha1.ClientNormal))
		if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonNotSupported ||
			!strings.Contains(p.Message, wantText) {
			t.Errorf("%s: %+v, want %q", user, p, wantText)
		}
	}
}

func TestClientKillIgnoresOtherTargets(t *testing.T) {
	t.Parallel()
	s, server := faulttest.NewStage(t, Kinds, guard.Choose), redistest.Shared(t)
	pod := s.Host("redis-0", server, nil)
	connections(t, server, 3, "PING")
	injector, target := s.Aim(killOf(v1alpha1.ClientNormal))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := faulttest.Called(injector.Inject(cancelled, target)); !errors.Is(err, context.Canceled) {
		t.Errorf("inject after the context ended: %v", err)
	}
	server.Restart()
	mine := connections(t, server, 3, "PING")
	inject(t, injector, target)
	checkEffect(t, injector, target, v1alpha1.EffectInconclusive, "another process")
	s.Replace(pod, "another")
	inject(t, injector, target)
	if err := s.Cluster.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	inject(t, injector, target)
	if n := closedByServer(t, mine); n != 0 {
		t.Errorf("%d connections of another process were closed", n)
	}
}
