//go:build integration

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/await"
	testcluster "github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/command"
)

// apiServer is the kube-apiserver of the tests in this package, once one asks for it; stop ends it.
var apiServer struct {
	once   sync.Once
	config *rest.Config
	stop   func() error
	err    error
}

func stopAPIServer() {
	if apiServer.stop != nil {
		if err := apiServer.stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// place is a namespace of a real API server. A test plays the operator: it writes the statuses.
type place struct {
	*testing.T
	client.Client
	namespace string
	env       []string // the kubeconfig
	config    *rest.Config
}

func newPlace(t *testing.T) *place {
	t.Helper()
	apiServer.once.Do(func() {
		ctrl.SetLogger(logr.Discard())
		apiServer.config, apiServer.stop, apiServer.err = testcluster.ControlPlane()
	})
	if apiServer.err != nil {
		t.Fatal(apiServer.err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(apiServer.config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "cli-"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	p := &place{T: t, Client: c, namespace: namespace.Name, config: apiServer.config}
	p.env = []string{"KUBECONFIG=" + p.kubeconfig(apiServer.config), "TERM=xterm-256color"}
	return p
}

// kubeconfig writes a file with the access to an API server, in the namespace of the place.
func (p *place) kubeconfig(config *rest.Config) string {
	p.Helper()
	return command.Kubeconfig(p.T, config, p.namespace)
}

// eventually waits until check is true. seen is what was there at the last look.
func (p *place) eventually(what string, check func() bool, seen ...fmt.Stringer) {
	p.Helper()
	await.Until(p.T, what, func() error { return await.That(check(), "not yet; seen:\n%s", seen) })
}

func (p *place) read(name string, o client.Object) bool {
	return p.Get(p.Context(), client.ObjectKey{Namespace: p.namespace, Name: name}, o) == nil
}

// load and kill are the objects of the tests' files.
func (p *place) load() *v1alpha1.RedisLoadTest {
	o := &v1alpha1.RedisLoadTest{}
	p.eventually("a load test", func() bool { return p.read("load", o) })
	return o
}

func (p *place) kill() *v1alpha1.RedisFault {
	o := &v1alpha1.RedisFault{}
	p.eventually("a fault", func() bool { return p.read("kill", o) })
	return o
}

const loadAndKill = `apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: redquake.dev/v1alpha1
kind: RedisFault
metadata: {name: kill}
spec:
  loadTestRef: {name: load}
  action: {type: PodKill}
---
apiVersion: redquake.dev/v1alpha1
kind: RedisLoadTest
metadata: {name: load}
spec:
  target: {service: {name: redis}}
  load: {rate: 100, duration: 1m}
  workload:
    commands:
    - {name: get, command: [GET, "{key}"]}
`

// file writes a file with objects.
func (p *place) file(text string) string {
	p.Helper()
	file := filepath.Join(p.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
	return file
}

// setLoad and setFault write a status, as the operator does.
func (p *place) setLoad(reason string, complete bool, verdict v1alpha1.Verdict) {
	p.Helper()
	o := p.load()
	before := o.DeepCopy()
	now := metav1.NowMicro()
	o.Status.ObservedGeneration, o.Status.Verdict = o.Generation, verdict
	if o.Status.StartTime == nil {
		o.Status.StartTime = &now
	}
	o.Status.Display = &v1alpha1.LoadTestDisplay{TPS: "100", P99: "1ms", Errors: "0%", Progress: "10%"}
	o.Status.Summary = &v1alpha1.LoadSummary{Requests: 100, Throughput: "100"}
	o.Status.Conditions = conditionsOf(o.Status.Conditions, reason, complete)
	if err := p.Status().Patch(p.Context(), o, client.MergeFrom(before)); err != nil {
		p.Fatal(err)
	}
}

func (p *place) setFault(reason string, complete bool, verdict v1alpha1.Verdict, holding bool) {
	p.Helper()
	o := p.kill()
	before := o.DeepCopy()
	o.Status.ObservedGeneration, o.Status.Verdict, o.Status.LoadTest, o.Status.Holding = o.Generation, verdict, "load",
		&holding
	if holding {
		now := metav1.NowMicro()
		o.Status.StartTime, o.Status.InjectedAt = &now, &now
		o.Status.Targets = []v1alpha1.FaultTarget{{Pod: "redis-0", UID: "1"}}
		o.Status.Timeline = []v1alpha1.TimelineEvent{{At: now, Event: "Injected", Object: "redis-0"}}
		o.Status.Display = &v1alpha1.FaultDisplay{Target: "redis-0", Outage: "1.08s"}
		o.Status.Impact = digest.Impact(
			result.NewFault(&impact.Impact{
				BaselineRate: 100,
				Outage:       impact.Outage{Bounded: durations.Exactly(1080 * time.Millisecond), Of: impact.Load},
			}, result.FaultInput{}))
	} else if o.Status.InjectedAt != nil {
		now := metav1.NowMicro()
		o.Status.RevertedAt = &now
	}
	o.Status.Conditions = conditionsOf(o.Status.Conditions, reason, complete)
	if err := p.Status().Patch(p.Context(), o, client.MergeFrom(before)); err != nil {
		p.Fatal(err)
	}
}

func conditionsOf(all []metav1.Condition, reason string, complete bool) []metav1.Condition {
	status := metav1.ConditionFalse
	if complete {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&all, metav1.Condition{
		Type:    v1alpha1.ConditionComplete,
		Status:  status,
		Reason:  reason,
		Message: "as the operator says",
	})
	return all
}

// tail is what a process has written so far; a test may read it meanwhile.
type tail struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *tail) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *tail) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
