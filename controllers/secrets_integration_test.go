//go:build integration

package controllers

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// planted is part of every password in TestPasswordsAreFoundNowhere.
const planted = "pLaNtEd"

// Load tests, and all kinds of faults that send commands to one server or to sentinels, run with passwords that are then looked for in every object,
// event and line of the log: also of runs that could not log in, and of a server that replies with what it was sent.
// Other tests do not run at the same time: the load pods write to the log of the whole process.
func TestPasswordsAreFoundNowhere(t *testing.T) {
	logs := &scanner{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer slog.SetDefault(before)
	t.Run("group", func(t *testing.T) {
		for name, run := range map[string]func(*place){"commands": loginAndBreak, "Sentinel": loginAtSentinels, "refused": loginInVain} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				p.logger = funcr.New(func(prefix, args string) { _, _ = logs.Write([]byte(prefix + args)) }, funcr.Options{Verbosity: 5})
				startKubelet(p, nil)
				p.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "auth"}, StringData: map[string]string{
					"password": planted + "-right", "sentinel": planted + "-sentinel", "wrong": planted + "-wrong",
				}})
				startOperator(p, spy{})
				run(p)
				p.holdsNo(planted)
			})
		}
	})
	if found := logs.found(); len(found) > 0 {
		t.Errorf("the logs hold a password:\n%s", strings.Join(found, "\n"))
	}
	if logs.lines() == 0 {
		t.Error("nothing was logged")
	}
}

func login(key string) *v1alpha1.RedisAuth {
	return &v1alpha1.RedisAuth{PasswordSecretRef: v1alpha1.SecretKeyReference{Name: "auth", Key: key}}
}

// loginAndBreak injects every kind of fault that acts by a command or on a pod.
func loginAndBreak(p *place) {
	redis := startRedis(p, "--requirepass", planted+"-right")
	p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Target.Auth = login("password")
		test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(20)), Duration: length(time.Hour)}
		test.Spec.Verify = &v1alpha1.LoadVerify{AcknowledgedWrites: true, Share: "10%"}
	}))
	p.testHasReason("run", time.Minute, v1alpha1.ReasonRunning)
	for i, action := range []v1alpha1.Action{
		{Type: v1alpha1.FaultConfig, Config: &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"hz": "50"}}},
		{Type: v1alpha1.FaultConfig, Config: &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"no-such": "50"}}},
		{Type: v1alpha1.FaultClientPause}, {Type: v1alpha1.FaultHang}, {Type: v1alpha1.FaultClientKill}, {Type: v1alpha1.FaultBackgroundSave},
		{Type: v1alpha1.FaultIOThreads, IOThreads: &v1alpha1.IOThreads{Count: 2, Method: v1alpha1.ApplyLive}},
		{Type: v1alpha1.FaultFailover}, {Type: v1alpha1.FaultProcessCrash}, {Type: v1alpha1.FaultPodKill},
	} {
		p.breakOnce(fmt.Sprintf("fault-%d", i), action)
	}
	p.ended("run")
}

// breakOnce waits until a fault was reverted or has failed.
func (p *place) breakOnce(name string, action v1alpha1.Action) {
	p.t.Helper()
	p.create(newFault(name, "run", action.Type, func(f *v1alpha1.RedisFault) {
		f.Spec.Action = action
		switch action.Type {
		case v1alpha1.FaultConfig, v1alpha1.FaultClientPause, v1alpha1.FaultHang, v1alpha1.FaultIOThreads:
			f.Spec.Duration, f.Spec.Allow = length(time.Second), []v1alpha1.Allowance{v1alpha1.AllowTooFewCores}
		}
	}))
	var f *v1alpha1.RedisFault
	p.until(name+" of type "+string(action.Type)+" is over", 2*time.Minute, func() bool {
		f = p.fault(name)
		return f.Status.RevertedAt != nil || meta.IsStatusConditionTrue(f.Status.Conditions, v1alpha1.ConditionFailed)
	}, func() string { return where(f.Status.Conditions) })
	p.t.Logf("%s: %s", action.Type, where(f.Status.Conditions))
	p.mustChange(change(p, &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
	p.faultEnds(name, time.Minute)
}

// loginAtSentinels fails over by sentinels that have a password of their own.
func loginAtSentinels(p *place) {
	set := redistest.NewSentinel(p.t, 1, redistest.SentinelOptions{Options: redistest.Options{Password: planted + "-right"}, SentinelPassword: planted + "-sentinel"})
	p.podsOf(set.Servers())
	p.create(newLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Target = redisPods()
		test.Spec.Target.Auth = login("password")
		test.Spec.Target.Sentinel = &v1alpha1.SentinelTarget{Addresses: set.SentinelAddresses(), MasterName: redistest.MasterName, Auth: login("sentinel")}
		test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(20)), Duration: length(time.Hour)}
	}))
	p.testHasReason("run", time.Minute, v1alpha1.ReasonRunning)
	p.breakOnce("failover", v1alpha1.Action{Type: v1alpha1.FaultFailover})
	p.ended("run")
}

// loginInVain has load tests and faults that cannot log in: a wrong password, a server without AUTH, TLS with one that has none.
func loginInVain(p *place) {
	redis := startRedis(p, "--requirepass", planted+"-right")
	renamed := redistest.Start(p.t, `rename-command AUTH ""`)
	tests := map[string]struct {
		address, key string
		tls          *v1alpha1.RedisTLS
	}{
		"wrong": {redis.address(), "wrong", nil}, "renamed": {renamed.Address(), "password", nil}, "tls": {redis.address(), "password", &v1alpha1.RedisTLS{}},
	}
	for name, test := range tests {
		target := func(target *v1alpha1.RedisTarget) { target.Auth, target.TLS = login(test.key), test.tls }
		p.create(newLoadTest(name, test.address, func(t *v1alpha1.RedisLoadTest) { target(&t.Spec.Target) }))
		p.create(newFault(name, name, v1alpha1.FaultConfig, func(f *v1alpha1.RedisFault) {
			f.Spec.Action.Config = &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"hz": "50"}}
		}))
	}
	for name := range tests {
		test := p.testEnds(name, time.Minute)
		p.t.Logf("%s: %s", name, where(test.Status.Conditions))
		p.faultEnds(name, time.Minute)
	}
}

// holdsNo looks for a secret in all objects of the place but the Secret itself, in the records also after decoding them.
func (p *place) holdsNo(secret string) {
	p.t.Helper()
	seen := map[string]int{}
	for _, list := range []client.ObjectList{
		&v1alpha1.RedisLoadTestList{}, &v1alpha1.RedisFaultList{}, &eventsv1.EventList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.PodList{}, &batchv1.JobList{},
	} {
		p.mustChange(p.client.List(context.Background(), list, client.InNamespace(p.namespace)))
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			o := item.(client.Object)
			if _, isSecret := o.(*corev1.Secret); isSecret && o.GetName() == "auth" {
				return nil
			}
			seen[fmt.Sprintf("%T", o)]++
			for _, text := range p.textsOf(o) {
				if at := strings.Index(text, secret); at >= 0 {
					p.t.Errorf("%T %s holds a password: %s", o, o.GetName(), text[max(0, at-200):min(len(text), at+100)])
				}
			}
			return nil
		})
	}
	p.t.Logf("looked through %v", seen)
}

// textsOf is an object as JSON, and its binary data as it is and decoded.
func (p *place) textsOf(o client.Object) []string {
	p.t.Helper()
	raw, err := json.Marshal(o)
	p.mustChange(err)
	texts := []string{string(raw)}
	binary := map[string][]byte{}
	switch o := o.(type) {
	case *corev1.ConfigMap:
		binary = o.BinaryData
	case *corev1.Secret:
		binary = o.Data
	}
	for key, data := range binary {
		texts = append(texts, string(data))
		if decoded, err := base64.StdEncoding.DecodeString(string(data)); err == nil {
			texts = append(texts, string(decoded))
		}
		if key == children.ResultsSeriesKey {
			_, err := record.DecodeSeries(data)
			p.mustChange(err)
			unpacked, err := gzip.NewReader(bytes.NewReader(data[1:])) // a byte with the version comes before
			p.mustChange(err)
			text, err := io.ReadAll(unpacked)
			p.mustChange(err)
			texts = append(texts, string(text))
		}
	}
	return texts
}

// scanner is a log that keeps the lines with a password.
type scanner struct {
	mu    sync.Mutex
	count int
	leaks []string
}

func (s *scanner) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if bytes.Contains(line, []byte(planted)) {
		s.leaks = append(s.leaks, string(line))
	}
	return len(line), nil
}

func (s *scanner) found() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaks
}

func (s *scanner) lines() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}
