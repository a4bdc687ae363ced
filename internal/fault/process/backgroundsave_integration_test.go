//go:build integration

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

func saveOf(kind v1alpha1.SaveKind) *v1alpha1.RedisFaultSpec {
	return &v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{Type: v1alpha1.FaultBackgroundSave, BackgroundSave: &v1alpha1.BackgroundSave{Kind: kind}},
	}
}

func sighting(all []contract.Sighting, event string) *contract.Sighting {
	i := slices.IndexFunc(all, func(s contract.Sighting) bool { return s.Event == event })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// slowSave makes a child take 10 s, so that a test has seen it meanwhile also on a machine that stalls: it sleeps after
// every key.
func slowSave(server *redistest.Server) {
	server.Do("MSET", "a", "1", "b", "2", "c", "3", "d", "4")
	server.Do("CONFIG", "SET", "rdb-key-save-delay", "2500000")
	server.Do("CONFIG", "SET", "aof-use-rdb-preamble", "yes")
}

// The server forks once, however often and by which operator Inject is called, and reports the fork's duration; with
// and without an append-only file.
func TestBackgroundSave(t *testing.T) { redistest.Each(t, testBackgroundSave) }

func testBackgroundSave(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind    v1alpha1.SaveKind
		options redistest.Options
	}{
		{v1alpha1.SaveSnapshot, redistest.Options{}},
		{v1alpha1.SaveAppendOnlyRewrite, redistest.Options{Config: []string{"appendonly yes"}}},
		{v1alpha1.SaveAppendOnlyRewrite, redistest.Options{}},
	} {
		t.Run(fmt.Sprint(tc.kind, tc.options.Config), func(t *testing.T) {
			t.Parallel()
			s, server := faulttest.NewStage(t, Kinds, guard.Choose), redistest.NewServer(t, tc.options)
			s.Host("redis-0", server, nil)
			slowSave(server)
			spec := saveOf(tc.kind)
			injector, target := s.Aim(spec)
			forks := server.Info("total_forks")
			begun(t, injector, target, false)
			checkEffect(t, injector, target, v1alpha1.EffectNotObserved, "still")
			if seen := injector.(contract.Follower).Follow(t.Context(), target); len(seen) > 0 {
				t.Errorf("seen before the injection: %+v", seen)
			}
			injectNow(t, injector, target)
			begun(t, injector, target, true)
			inject(t, s.Reborn(spec), target)
			checkEffect(t, injector, target, v1alpha1.EffectConfirmed, "latest_fork_usec")
			seen := injector.(contract.Follower).Follow(t.Context(), target)
			if started := sighting(seen, eventSaveStarted); started == nil || !started.At.Equal(target.InjectedAt.Time) ||
				!strings.Contains(started.Message, "the fork took") {
				t.Errorf("started: %+v", started)
			}
			if sighting(seen, eventSaveEnded) != nil {
				t.Error("the child ended, want it still sleeping")
			}
			await.Until(t, "the child has ended", func() error {
				if ended := sighting(injector.(contract.Follower).Follow(t.Context(), target), eventSaveEnded); ended == nil {
					return errors.New("not yet")
				} else if !strings.HasPrefix(ended.Message, "it took ") || strings.Contains(ended.Message, "failed") ||
					ended.At.Before(target.InjectedAt.Time) {
					t.Errorf("ended: %+v", ended)
				}
				return nil
			})
			inject(t, s.Reborn(spec), target)
			checkEffect(t, injector, target, v1alpha1.EffectConfirmed, "served nothing for")
			if now := server.Info("total_forks"); now == forks ||
				now != fmt.Sprint(faulttest.Recorded[saveRecord](t, target).Forks+1) {
				t.Errorf("%s forks became %s, want one more", forks, now)
			}
			revertFully(t, injector, target)
		})
	}
}

// An existing child is waited for: with a temporary problem before the record, and an error after it.
func TestBackgroundSaveWaitsForAnother(t *testing.T) {
	redistest.Each(t, testBackgroundSaveWaitsForAnother)
}

func testBackgroundSaveWaitsForAnother(t *testing.T) {
	t.Parallel()
	s, server := faulttest.NewStage(t, Kinds, guard.Choose), redistest.NewServer(t, redistest.Options{})
	s.Host("redis-0", server, nil)
	slowSave(server)
	injector, target := s.Aim(saveOf(v1alpha1.SaveAppendOnlyRewrite))
	server.Do("BGSAVE")
	if err := faulttest.Called(injector.Inject(t.Context(), target)); err == nil ||
		!strings.Contains(err.Error(), "a snapshot is under way") {
		t.Errorf("inject: %v", err)
	}
	if server.Info("aof_rewrite_scheduled") != "0" {
		t.Error("the server scheduled a rewrite for later")
	}
	checkEffect(t, injector, target, v1alpha1.EffectNotObserved, "still")
	_, _, err := s.TryAim(saveOf(v1alpha1.SaveSnapshot))
	if p := faulttest.ProblemOf(t, err); p.Lasting || !strings.Contains(p.Message, "a snapshot is under way") {
		t.Errorf("%+v", p)
	}
	await.Until(t, "the other child has ended", func() error {
		return faulttest.Called(injector.Inject(t.Context(), target))
	})
	checkEffect(t, injector, target, v1alpha1.EffectConfirmed, "BGREWRITEAOF")
}

// A save that fails has forked too, and the timeline reports the failure.
func TestBackgroundSaveFails(t *testing.T) { redistest.Each(t, testBackgroundSaveFails) }

func testBackgroundSaveFails(t *testing.T) {
	t.Parallel()
	s, server := faulttest.NewStage(t, Kinds, guard.Choose), redistest.NewServer(t, redistest.Options{})
	s.Host("redis-0", server, nil)
	if err := os.Mkdir(filepath.Join(server.Dir, "dump.rdb"), 0o700); err != nil { // so that no file can take the name
		t.Fatal(err)
	}
	injector, target := s.Aim(saveOf(v1alpha1.SaveSnapshot))
	injectNow(t, injector, target)
	await.Until(t, "the failure is seen", func() error {
		ended := sighting(injector.(contract.Follower).Follow(t.Context(), target), eventSaveEnded)
		if ended == nil {
			return errors.New("not yet")
		}
		if !strings.Contains(ended.Message, "failed") {
			t.Errorf("ended: %+v", ended)
		}
		return nil
	})
	checkEffect(t, injector, target, v1alpha1.EffectConfirmed, "BGSAVE")
}

func TestBackgroundSaveMemory(t *testing.T) { redistest.Each(t, testBackgroundSaveMemory) }

func testBackgroundSaveMemory(t *testing.T) {
	t.Parallel()
	for limit, risky := range map[string]bool{"1Mi": true, "1Gi": false} {
		s, server := faulttest.NewStage(t, Kinds, guard.Choose), redistest.NewServer(t, redistest.Options{})
		s.Host("redis-0", server, func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}
		})
		injector, target := s.Aim(saveOf(v1alpha1.SaveSnapshot))
		at := metav1.NowMicro()
		target.InjectedAt = &at
		risk := sighting(injector.(contract.Follower).Follow(t.Context(), target), eventMemoryAtRisk)
		if (risk != nil) != risky || risky && !strings.Contains(risk.Message, "may use 1Mi") {
			t.Errorf("limit %s: %+v", limit, risk)
		}
	}
}

func TestBackgroundSaveRefused(t *testing.T) {
	t.Parallel()
	s := faulttest.NewStage(t, Kinds, guard.Choose)
	server := redistest.NewServer(t, redistest.Options{
		Users:  []string{"app on >pw ~* +info +ping +acl|dryrun"},
		Config: []string{`rename-command BGREWRITEAOF ""`},
	})
	s.Login = redis.Login{Username: "app", Password: "pw", Timeout: faulttest.Patient}
	s.Host("redis-0", server, nil)
	for kind, wantText := range map[v1alpha1.SaveKind]string{
		v1alpha1.SaveSnapshot:          "+bgsave",
		v1alpha1.SaveAppendOnlyRewrite: "rename-command",
	} {
		_, _, err := s.TryAim(saveOf(kind))
		if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonNotSupported || !p.Lasting ||
			!strings.Contains(p.Message, wantText) {
			t.Errorf("%s: %+v, want %q", kind, p, wantText)
		}
	}
}

func TestBackgroundSaveIgnoresOtherTargets(t *testing.T) {
	t.Parallel()
	s, server := faulttest.NewStage(t, Kinds, guard.Choose), redistest.NewServer(t, redistest.Options{})
	pod := s.Host("redis-0", server, nil)
	injector, target := s.Aim(saveOf(v1alpha1.SaveSnapshot))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := faulttest.Called(injector.Inject(cancelled, target)); !errors.Is(err, context.Canceled) {
		t.Errorf("inject after the context ended: %v", err)
	}
	server.Restart()
	inject(t, injector, target)
	checkEffect(t, injector, target, v1alpha1.EffectInconclusive, "another process")
	s.Replace(pod, "another")
	inject(t, injector, target)
	if err := s.Cluster.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	inject(t, injector, target)
	if forks := server.Info("total_forks"); forks != "0" {
		t.Errorf("another process forked %s times", forks)
	}
}
