package target_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/target/confine"
	"github.com/redquake/redquake/internal/target/sentinel"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// Many servers are queried at a time.
func TestSurveyOfSlowServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := faulttest.NewWorld(t)
		for i := range 600 {
			w.Pod(fmt.Sprintf("redis-%d", i), fmt.Sprintf("u%d", i), fmt.Sprintf("10.0.%d.%d", i/250, i%250+1), topology.Replica,
				nil)
		}
		for _, server := range w.Servers.All() {
			server.SetCost(500 * time.Millisecond)
		}
		began := time.Now()
		found, err := faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Survey(t.Context())
		if err != nil || len(found) != 600 {
			t.Fatalf("%d servers, %v", len(found), err)
		}
		faulttest.Lasted(t, "the survey", began, 1500*time.Millisecond)
		for _, s := range found {
			if s.Err != nil || s.State.Role != topology.Replica {
				t.Errorf("%s: %+v, %v", s.Pod.Name, s.State, s.Err)
			}
		}
	})
}

// Servers that do not answer hold a survey for a bounded time, however many they are, and hide no server that does.
func TestSurveyOfSilentServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := faulttest.NewWorld(t)
		for i := range 1000 {
			w.Pod(fmt.Sprintf("redis-%04d", i), fmt.Sprintf("u%d", i), fmt.Sprintf("10.0.%d.%d", i/250, i%250+1),
				topology.Replica, nil)
		}
		deaf := func(address string) bool { return address != "10.0.0.1:6379" }
		for address, server := range w.Servers.All() {
			if deaf(address) {
				server.Stop()
			}
		}
		began := time.Now()
		found, err := faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Survey(t.Context())
		if took := time.Since(began); err != nil || len(found) != 1000 || took > target.SurveyTimeout {
			t.Fatalf("%d servers in %s, %v", len(found), took, err)
		}
		for _, s := range found {
			if (s.Err != nil) != deaf(s.Address) {
				t.Errorf("%s: %v", s.Pod.Name, s.Err)
			}
		}
	})
}

// Pods are listed page by page.
func TestPodsArePaged(t *testing.T) {
	w := faulttest.NewWorld(t)
	lists := 0
	deps := w.Deps()
	deps.Live = interceptor.NewClient(w.Cluster, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			lists++
			given := client.ListOptions{}
			given.ApplyOptions(options)
			from, _ := strconv.Atoi(given.Continue)
			to := 1200
			if given.Limit > 0 {
				to = min(to, from+int(given.Limit))
			}
			page := into.(*corev1.PodList)
			page.Items, page.Continue = nil, ""
			for i := from; i < to; i++ {
				page.Items = append(page.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("redis-%d", i)}})
			}
			if to < 1200 {
				page.Continue = strconv.Itoa(to)
			}
			return nil
		},
	})
	redis := faulttest.On(deps, faulttest.ByPods(map[string]string{"app": "redis"})).Redis
	if all, err := redis.AllPods(t.Context()); err != nil || len(all) != 1200 || lists != 3 {
		t.Errorf("%d pods in %d lists, want 1200 in 3: %v", len(all), lists, err)
	}
}

// A port that drops everything is no sentinel, and does not delay the survey.
func TestUnresponsiveSentinelPortsDoNotDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := faulttest.NewWorld(t)
		w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
		w.Pod("redis-1", "u1", "10.0.0.2", topology.Replica, nil)
		deps := w.Deps()
		deps.Sentinels = sentinel.Set{Addresses: []string{"10.0.0.1:26379"}, Servers: deps.Servers}
		found, err := faulttest.On(deps, faulttest.ByPods(map[string]string{"app": "redis"})).Survey(t.Context())
		faulttest.Must(t, err)
		for _, address := range []string{"10.0.0.1:26379", "10.0.0.2:26379"} {
			w.Servers.Start(address, memredis.State{Mode: "sentinel"}).Script("SENTINEL MYID", faulttest.Reply("id"))
		}
		w.Servers.At("10.0.0.2:26379").Stop()
		began := time.Now()
		deps.SentinelsBeside(t.Context(), found, func(*target.Server) bool { return true })
		faulttest.Lasted(t, "the look", began, confine.QueryTimeout)
		for _, s := range found {
			if want := s.Pod.Name == "redis-0"; s.SentinelBeside != want {
				t.Errorf("%s has a sentinel: %t, want %t", s.Pod.Name, s.SentinelBeside, want)
			}
		}
	})
}

// A server that accepts a command and does not answer within target.ProbeWithin is unresponsive; a shorter context
// leads to an error.
func TestSilent(t *testing.T) {
	for _, tc := range []struct {
		name          string
		takes, within time.Duration // within: of the context; 0 = no deadline
		script        func(*memredis.Server)
		password      string
		silent, fails bool
		lasts         time.Duration
	}{
		{name: "an answer in time", takes: target.ProbeWithin - 1, lasts: target.ProbeWithin - 1},
		{name: "a refusal in time", takes: time.Millisecond, script: refusing, lasts: time.Millisecond},
		{name: "too late", takes: target.ProbeWithin + 1, silent: true, lasts: target.ProbeWithin},
		{name: "never", takes: time.Hour, silent: true, lasts: target.ProbeWithin},
		{name: "no server", script: (*memredis.Server).Kill, fails: true},
		{
			name: "a login without an answer", script: (*memredis.Server).Stop, password: "secret", silent: true,
			lasts: target.ProbeWithin,
		},
		{
			name:   "no time to wait",
			takes:  time.Hour,
			within: 100 * time.Millisecond,
			fails:  true,
			lasts:  100 * time.Millisecond,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := faulttest.NewWorld(t)
				w.Pod("redis-0", "u0", "10.0.0.1", "", nil)
				server := w.Servers.Start("10.0.0.1:6379", memredis.State{})
				if server.SetCost(tc.takes); tc.script != nil {
					tc.script(server)
				}
				deps := w.Deps()
				deps.Login.Password = tc.password
				ctx := t.Context()
				if tc.within > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.within)
					defer cancel()
				}
				began := time.Now()
				silent, err := deps.Silent(ctx, "10.0.0.1:6379", "PING")
				faulttest.Lasted(t, "the probe", began, tc.lasts)
				if silent != tc.silent || (err != nil) != tc.fails {
					t.Errorf("silent %t, %v; want %t, an error %t", silent, err, tc.silent, tc.fails)
				}
				if sent, err := deps.Send(t.Context(), "10.0.0.1:6379", time.Second, "DEBUG", "SLEEP",
					"5"); tc.password != "" && (sent || err == nil) {
					t.Error("a command that was not sent counts as one that was not answered")
				}
			})
		})
	}
}

// refusing is a server at which the operator may run no PING.
func refusing(s *memredis.Server) {
	s.Answer("PING", "-NOPERM this user has no permissions to run the 'ping' command")
}
