//go:build integration

package controllers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	goredis "github.com/redis/go-redis/v9"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/redquake/redquake/api/v1alpha1"
)

// apiServer is a real kube-apiserver with its etcd, shared by all tests of this package. Each test has a namespace and loopback addresses of its own.
var apiServer struct {
	config *rest.Config
	client client.WithWatch // past every cache
	block  byte             // 127.block.x.y are this process's
	next   atomic.Int32     // x
}

func TestMain(m *testing.M) {
	if os.Getenv(asOperator) != "" {
		os.Exit(beOperator()) // a process that a crash test started and is going to kill
	}
	os.Exit(withAPIServer(m))
}

func withAPIServer(m *testing.M) int {
	ctrl.SetLogger(logr.Discard())
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goredis.SetLogger(quiet{}) // servers that are down are what the tests are about
	env := &envtest.Environment{CRDDirectoryPaths: []string{"../config/crd/bases"}, ErrorIfCRDPathMissing: true}
	config, err := env.Start()
	if err != nil {
		fmt.Fprintf(os.Stderr, "kube-apiserver and etcd are looked for in KUBEBUILDER_ASSETS: %v\n", err)
		return 1
	}
	defer func() {
		if err := errors.Join(env.Stop(), stopMeshServer()); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	config.QPS, config.Burst = 500, 1000
	apiServer.config = config
	if apiServer.client, err = client.NewWithWatch(config, client.Options{Scheme: NewScheme()}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	held, err := reserveBlock()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer held.Close()
	go watchMachine()
	return m.Run()
}

// lastStall is when a timer of this process last came 50 ms late: the load pods run in it, too.
var lastStall atomic.Pointer[time.Time]

// stalledSince says whether the machine stood still after an instant.
func stalledSince(from time.Time) bool {
	at := lastStall.Load()
	return at != nil && at.After(from)
}

func watchMachine() {
	for began := time.Now(); ; {
		time.Sleep(10 * time.Millisecond)
		now := time.Now()
		if now.Sub(began) > 60*time.Millisecond {
			lastStall.Store(&now)
		}
		began = now
	}
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// reserveBlock takes 127.B.0.0/16 for this process: ports are fixed, so test binaries that run side by side need addresses of their own.
// The listener that it returns is the mark that others find.
func reserveBlock() (net.Listener, error) {
	var last error
	for range 50 {
		block := byte(1 + rand.IntN(254))
		held, err := net.Listen("tcp", fmt.Sprintf("127.%d.255.254:7379", block))
		if err == nil {
			apiServer.block = block
			return held, nil
		}
		last = err
	}
	return nil, last
}

// place is a test's own part of the cluster.
type place struct {
	t         *testing.T
	namespace string
	config    *rest.Config // of its kube-apiserver
	client    client.WithWatch
	subnet    string // 127.x.y.
	stopMesh  func() // ends the stand-in of Chaos Mesh, where there is one
}

func newPlace(t *testing.T) *place {
	t.Helper()
	return newPlaceOn(t, apiServer.config, apiServer.client)
}

// placeOn is a place on the cluster that a test asks for; nil = newPlace.
func placeOn(t *testing.T, on func(*testing.T) *place) *place {
	t.Helper()
	if on == nil {
		on = newPlace
	}
	return on(t)
}

func newPlaceOn(t *testing.T, config *rest.Config, to client.WithWatch) *place {
	t.Helper()
	t.TempDir() // what uses one in the background is stopped before they are removed: cleanups run backwards from here
	n := apiServer.next.Add(1)
	p := &place{t: t, namespace: fmt.Sprintf("test-%d", n), config: config, client: to, subnet: fmt.Sprintf("127.%d.%d.", apiServer.block, n)}
	p.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}})
	return p
}

// home is the namespace of the operators that work here. Nobody makes it unless the test does.
func (p *place) home() string { return p.namespace + "-home" }

// standIn plays a part of the cluster: it calls step whenever an object of these kinds changes and every so often, until the test ends or stop is
// called. That something is gone, or was changed by somebody else, is no problem of it, nor is an API server that refuses once in a while: one
// that lasts for three seconds is.
func (p *place) standIn(what string, every time.Duration, step func(context.Context) error, kinds ...client.ObjectList) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	changed := make(chan struct{}, 1)
	var ended sync.WaitGroup
	for _, kind := range kinds {
		ended.Go(func() { p.tell(ctx, kind, changed) })
	}
	ended.Go(func() {
		well := time.Now()
		for ctx.Err() == nil {
			err := step(ctx)
			switch {
			case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err), meta.IsNoMatchError(err):
				well = time.Now()
			case ctx.Err() == nil && time.Since(well) > 3*time.Second:
				p.t.Errorf("%s: %v", what, err)
				well = time.Now()
			}
			select {
			case <-ctx.Done():
			case <-changed:
			case <-time.After(every):
			}
		}
	})
	stop = func() {
		cancel()
		ended.Wait()
	}
	p.t.Cleanup(stop)
	return stop
}

// tell says on a channel that an object of a kind has changed. A watch that ends is begun again.
func (p *place) tell(ctx context.Context, kind client.ObjectList, changed chan<- struct{}) {
	for ctx.Err() == nil {
		w, err := p.client.Watch(ctx, kind, client.InNamespace(p.namespace))
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		for range w.ResultChan() {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
		w.Stop()
	}
}

func (p *place) create(object client.Object) {
	p.t.Helper()
	if object.GetNamespace() == "" {
		if _, cluster := object.(*corev1.Namespace); !cluster {
			object.SetNamespace(p.namespace)
		}
	}
	if err := p.client.Create(context.Background(), object); err != nil {
		p.t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

// read fills object, by its name; false where there is none.
func (p *place) read(object client.Object) bool {
	p.t.Helper()
	object.SetNamespace(p.namespace)
	err := p.client.Get(context.Background(), client.ObjectKeyFromObject(object), object)
	if client.IgnoreNotFound(err) != nil {
		p.t.Fatalf("read %T %s: %v", object, object.GetName(), err)
	}
	return err == nil
}

// change patches an object's spec or metadata.
func change[T client.Object](p *place, object T, f func(T)) error {
	p.t.Helper()
	if !p.read(object) {
		p.t.Fatalf("there is no %T %s to change", object, object.GetName())
	}
	before := object.DeepCopyObject().(client.Object)
	f(object)
	return p.client.Patch(context.Background(), object, client.MergeFrom(before))
}

func (p *place) mustChange(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// until waits for what must come, and fails the test with state's words if it does not.
func (p *place) until(what string, within time.Duration, came func() bool, state func() string) {
	p.t.Helper()
	for end := time.Now().Add(within); !came(); time.Sleep(60 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("after %s still not: %s; %s", within, what, state())
		}
	}
}

func (p *place) loadTest(name string) *v1alpha1.RedisLoadTest {
	p.t.Helper()
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.read(test)
	return test
}

func (p *place) fault(name string) *v1alpha1.RedisFault {
	p.t.Helper()
	f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.read(f)
	return f
}

// where is the reason of Complete and its message.
func where(conditions []metav1.Condition) string {
	for _, c := range conditions {
		if c.Type == v1alpha1.ConditionComplete {
			return fmt.Sprintf("%s (%s): %s", c.Reason, c.Status, c.Message)
		}
	}
	return "no condition Complete"
}

func reason(conditions []metav1.Condition) string {
	for _, c := range conditions {
		if c.Type == v1alpha1.ConditionComplete {
			return c.Reason
		}
	}
	return ""
}

// testEnds waits until a load test is complete or has failed.
func (p *place) testEnds(name string, within time.Duration) *v1alpha1.RedisLoadTest {
	p.t.Helper()
	var test *v1alpha1.RedisLoadTest
	p.until("load test "+name+" is over", within, func() bool {
		test = p.loadTest(name)
		return isFinished(test.Status.Conditions)
	}, func() string { return where(test.Status.Conditions) })
	return test
}

func (p *place) faultEnds(name string, within time.Duration) *v1alpha1.RedisFault {
	p.t.Helper()
	var f *v1alpha1.RedisFault
	p.until("fault "+name+" is over", within, func() bool {
		f = p.fault(name)
		return isFinished(f.Status.Conditions) && len(f.Finalizers) == 0
	}, func() string { return where(f.Status.Conditions) })
	return f
}

// stands waits until a load test's reason is one of these.
func (p *place) testStands(name string, within time.Duration, reasons ...string) *v1alpha1.RedisLoadTest {
	p.t.Helper()
	var test *v1alpha1.RedisLoadTest
	p.until(fmt.Sprintf("load test %s is %v", name, reasons), within, func() bool {
		test = p.loadTest(name)
		for _, r := range reasons {
			if reason(test.Status.Conditions) == r {
				return true
			}
		}
		return false
	}, func() string { return where(test.Status.Conditions) })
	return test
}

func (p *place) faultStands(name string, within time.Duration, want string) *v1alpha1.RedisFault {
	p.t.Helper()
	var f *v1alpha1.RedisFault
	p.until(fmt.Sprintf("fault %s is %s", name, want), within, func() bool {
		f = p.fault(name)
		return reason(f.Status.Conditions) == want
	}, func() string {
		return where(f.Status.Conditions) + "; load: " + where(p.loadTest("run").Status.Conditions)
	})
	return f
}
