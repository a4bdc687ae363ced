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
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	goredis "github.com/redis/go-redis/v9"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
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
	p := &place{
		t: t, namespace: fmt.Sprintf("test-%d", n), config: config, client: to, subnet: fmt.Sprintf("127.%d.%d.", apiServer.block, n), lookEvery: 300 * time.Millisecond,
	}
	p.operate = p.startManager
	p.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}})
	return p
}
