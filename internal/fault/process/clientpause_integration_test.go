//go:build integration

package process

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

func pauseOfAll(lasts time.Duration) *v1alpha1.RedisFaultSpec {
	return lasting(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultClientPause}}, lasts)
}

func pauseOfWrites(lasts time.Duration) *v1alpha1.RedisFaultSpec {
	return lasting(&v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{
			Type:        v1alpha1.FaultClientPause,
			ClientPause: &v1alpha1.ClientPause{Mode: v1alpha1.PauseWrite},
		},
	}, lasts)
}

func checkEffect(
	t *testing.T, injector contract.Injector, target *v1alpha1.FaultTarget, want v1alpha1.Effect, wantText string,
) {
	t.Helper()
	if got, evidence := injector.Effect(t.Context(), target); got != want || !strings.Contains(evidence, wantText) {
		t.Errorf("effect %s (%s), want %s about %q", got, evidence, want, wantText)
	}
}

// revertFully calls Revert until it is done, as the controller does.
func revertFully(t *testing.T, injector contract.Injector, target *v1alpha1.FaultTarget) {
	t.Helper()
	await.Until(t, "the fault is reverted", func() error { return faulttest.Called(injector.Revert(t.Context(), target)) })
}

func inject(t *testing.T, injector contract.Injector, target *v1alpha1.FaultTarget) {
	t.Helper()
	if err := faulttest.Called(injector.Inject(t.Context(), target)); err != nil {
		t.Fatalf("inject: %v", err)
	}
}

func begun(t *testing.T, injector contract.Injector, target *v1alpha1.FaultTarget, want bool) {
	t.Helper()
	if got, err := injector.Begun(t.Context(), target); got != want || err != nil {
		t.Errorf("begun %v, %v; want %v", got, err, want)
	}
}

// pausesLeft fails the test unless the server has carried out some of the pauses of that length, but not all.
func pausesLeft(t *testing.T, server *redistest.Server, lasts time.Duration) {
	t.Helper()
	if n, all := executions(t, server, "client|pause"), len(pauses(lasts+afterwards)); n != uncounted &&
		(n == 0 || n >= all) {
		t.Errorf("the server carried out %d of %d pauses", n, all)
	}
}

func TestClientPauseOfAll(t *testing.T) { redistest.Each(t, testClientPauseOfAll) }

func testClientPauseOfAll(t *testing.T) {
	t.Parallel()
	const lasts = 10 * time.Minute
	s, server := faulttest.NewHostedStage(t, Kinds, guard.Choose)
	injector, target := s.Aim(pauseOfAll(lasts))
	begun(t, injector, target, false)
	checkEffect(t, injector, target, v1alpha1.EffectNotObserved, "still")
	if err := faulttest.Called(injector.Revert(t.Context(), target)); err != nil {
		t.Errorf("revert before the injection: %v", err)
	}
	inject(t, injector, target)
	begun(t, injector, target, true)
	checkEffect(t, injector, target, v1alpha1.EffectConfirmed, "does not answer PING")
	inject(t, injector, target)
	revertFully(t, injector, target)
	server.Do("PING")
	pausesLeft(t, server, lasts)
	checkEffect(t, injector, target, v1alpha1.EffectNotObserved, "still answers")
	revertFully(t, injector, target)
}

// If the operator does not end the pause, the server does, and no client is served before.
func TestClientPauseEndsByItself(t *testing.T) { redistest.Each(t, testClientPauseEndsByItself) }

func testClientPauseEndsByItself(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		spec *v1alpha1.RedisFaultSpec
		want int // pauses
	}{
		{"of all", pauseOfAll(time.Second), len(pauses(time.Second + afterwards))},
		{"of writes", pauseOfWrites(time.Second), 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, server := faulttest.NewHostedStage(t, Kinds, guard.Choose)
			injector, target := s.Aim(tc.spec)
			began := time.Now()
			inject(t, injector, target)
			server.Do("SET", "a", "1")
			if took, want := time.Since(began), time.Second+afterwards; took < want-50*time.Millisecond {
				t.Errorf("answered after %s, want %s", took, want)
			}
			if n := executions(t, server, "client|pause"); n != tc.want && n != uncounted {
				t.Errorf("the server carried out %d pauses, want %d", n, tc.want)
			}
			revertFully(t, injector, target)
		})
	}
}

// A crash of the operator ends its pause; the next operator injects it again.
func TestClientPauseOfAllIsRepeatedAfterOperatorCrash(t *testing.T) {
	t.Parallel()
	const lasts = 10 * time.Minute
	s, server := faulttest.NewHostedStage(t, Kinds, guard.Choose)
	spec := pauseOfAll(lasts)
	injector, target := s.Aim(spec)
	inject(t, injector, target)
	injector = s.Reborn(spec)
	server.Do("PING")
	pausesLeft(t, server, lasts)
	begun(t, injector, target, false)
	checkEffect(t, injector, target, v1alpha1.EffectNotObserved, "still answers")
	inject(t, injector, target)
	checkEffect(t, injector, target, v1alpha1.EffectConfirmed, "PING")
	injector = s.Reborn(spec)
	revertFully(t, injector, target)
}

// A second injection, by any process, sends no second pause, which would move the end.
func TestClientPauseOfWrites(t *testing.T) { redistest.Each(t, testClientPauseOfWrites) }

func testClientPauseOfWrites(t *testing.T) {
	t.Parallel()
	s, server := faulttest.NewHostedStage(t, Kinds, guard.Choose)
	spec := pauseOfWrites(10 * time.Minute)
	injector, target := s.Aim(spec)
	begun(t, injector, target, false)
	checkEffect(t, injector, target, v1alpha1.EffectNotObserved, "still answers")
	if err := faulttest.Called(injector.Revert(t.Context(), target)); err != nil {
		t.Errorf("revert before the injection: %v", err)
	}
	inject(t, injector, target)
	injector = s.Reborn(spec)
	begun(t, injector, target, true)
	server.Do("GET", "a") // answered: the pause continues, as the next line checks
	checkEffect(t, injector, target, v1alpha1.EffectConfirmed, "EVAL")
	inject(t, injector, target)
	if n := executions(t, server, "client|pause"); n != 1 && n != uncounted {
		t.Errorf("the server was paused %d times", n)
	}
	revertFully(t, injector, target)
	server.Do("SET", "a", "1")
	if n := executions(t, server, "client|unpause"); n != 1 && n != uncounted {
		t.Errorf("the pause was ended %d times", n)
	}
	checkEffect(t, injector, target, v1alpha1.EffectNotObserved, "still answers")
	revertFully(t, injector, target)
}

// Nothing is sent to a replaced pod, to a restarted process, or after the context has ended.
func TestClientPauseIgnoresOtherTargets(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]*v1alpha1.RedisFaultSpec{
		"All":   pauseOfAll(time.Minute),
		"Write": pauseOfWrites(time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, _ := checkIgnoresOtherTargets(t, spec, nil)
			if n := executions(t, server, "client|pause"); n != 0 {
				t.Errorf("another server was paused %d times", n)
			}
		})
	}
}

// checkIgnoresOtherTargets fails the test if a fault acts after its context has ended, on another process, on another
// pod, or without a pod. restarted, where given, checks the fault while another process runs. It returns the server and
// the record.
func checkIgnoresOtherTargets(
	t *testing.T, spec *v1alpha1.RedisFaultSpec, restarted func(contract.Injector, *v1alpha1.FaultTarget),
) (*redistest.Server, *v1alpha1.FaultTarget) {
	t.Helper()
	s, server := faulttest.NewStage(t, Kinds, guard.Choose), redistest.Shared(t)
	pod := s.Host("redis-0", server, nil)
	injector, target := s.Aim(spec)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := faulttest.Called(injector.Inject(cancelled, target)); !errors.Is(err, context.Canceled) {
		t.Errorf("inject after the context ended: %v", err)
	}
	if effect, _ := injector.Effect(cancelled, target); effect != v1alpha1.EffectInconclusive {
		t.Errorf("effect %s after the context ended", effect)
	}
	server.Restart()
	inject(t, injector, target)
	if restarted != nil {
		restarted(injector, target)
	}
	revertFully(t, injector, target)
	s.Replace(pod, "another")
	inject(t, injector, target)
	revertFully(t, injector, target)
	if err := s.Cluster.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	inject(t, injector, target)
	revertFully(t, injector, target)
	return server, target
}

func TestClientPauseRefused(t *testing.T) { redistest.Each(t, testClientPauseRefused) }

func testClientPauseRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, user string
		spec       *v1alpha1.RedisFaultSpec
		wantText   string
	}{
		{"no CLIENT PAUSE", "app on >pw ~* +info +ping +acl|dryrun", pauseOfAll(time.Minute), "+client|pause"},
		{
			"no CLIENT UNPAUSE", "app on >pw ~* +info +ping +acl|dryrun +client|pause", pauseOfWrites(time.Minute),
			"+client|unpause",
		},
		{
			"nothing to see it by", "app on >pw ~* +info +ping +acl|dryrun +client|pause +client|unpause",
			pauseOfWrites(time.Minute), "EVAL",
		},
	} {
		s := faulttest.NewStage(t, Kinds, guard.Choose)
		server := redistest.NewServer(t, redistest.Options{Users: []string{tc.user}})
		s.Login = redis.Login{Username: "app", Password: "pw", Timeout: faulttest.Patient}
		s.Host("redis-0", server, nil)
		_, _, err := s.TryAim(tc.spec)
		if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonNotSupported || !p.Lasting ||
			!strings.Contains(p.Message, tc.wantText) {
			t.Errorf("%s: %+v, want %q", tc.name, p, tc.wantText)
		}
	}
	s, server := faulttest.NewHostedStage(t, Kinds, guard.Choose)
	server.Do("CLIENT", "PAUSE", "60000", "WRITE")
	_, _, err := s.TryAim(pauseOfWrites(time.Minute))
	if p := faulttest.ProblemOf(t, err); p.Lasting || !strings.Contains(p.Message, "somebody else") {
		t.Errorf("pause by another client: %+v", p)
	}
}

// PUBLISH detects a pause of writes where scripts are forbidden, also over TLS.
func TestClientPauseByACLUserOverTLS(t *testing.T) {
	redistest.Each(t, testClientPauseByACLUserOverTLS)
}

func testClientPauseByACLUserOverTLS(t *testing.T) {
	t.Parallel()
	authority := redistest.NewAuthority(t)
	s := faulttest.NewStage(t, Kinds, guard.Choose)
	server := redistest.NewServer(t, redistest.Options{
		TLS:   authority,
		Users: []string{"app on >pw &redquake +info +ping +acl|dryrun +client|pause +client|unpause +publish"},
	})
	s.Login = redis.Login{Username: "app", Password: "pw", TLS: authority.Client("client"), Timeout: faulttest.Patient}
	s.Host("redis-0", server, nil)
	for name, spec := range map[string]*v1alpha1.RedisFaultSpec{
		"PING":    pauseOfAll(time.Minute),
		"PUBLISH": pauseOfWrites(time.Minute),
	} {
		injector, target := s.Aim(spec)
		inject(t, injector, target)
		checkEffect(t, injector, target, v1alpha1.EffectConfirmed, name)
		revertFully(t, injector, target)
		checkEffect(t, injector, target, v1alpha1.EffectNotObserved, "")
	}
}

func TestPauses(t *testing.T) { redistest.Each(t, testPauses) }

func testPauses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		lasts time.Duration
		n     int
		last  string
	}{
		{100 * time.Millisecond, 1, "100"},
		{time.Second, 5, "200"},
		{1300 * time.Millisecond, 7, "100"},
		{time.Hour, 3600, "1000"},
		{24 * time.Hour, 3600, "24000"},
	} {
		all := pauses(tc.lasts)
		if len(all) != tc.n || all[len(all)-1][2] != tc.last {
			t.Errorf("%s: %d pauses, the last of %sms; want %d and %s", tc.lasts, len(all), all[len(all)-1][2], tc.n, tc.last)
		}
	}
}

func lasting(spec *v1alpha1.RedisFaultSpec, lasts time.Duration) *v1alpha1.RedisFaultSpec {
	spec.Duration = &metav1.Duration{Duration: lasts}
	return spec
}
