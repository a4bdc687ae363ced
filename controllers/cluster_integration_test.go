//go:build integration

package controllers

import (
	"context"
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

	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/cluster"
)

// apiServer is a real kube-apiserver with its etcd, shared by all tests of this package. Each test has its own
// namespace and loopback addresses.
var apiServer struct {
	config *rest.Config
	client client.WithWatch // not cached
	block  byte             // 127.block.x.y are this process's
	next   atomic.Int32     // x
}

// withAPIServer runs the tests of a package with an API server, and returns the exit code. In the end it calls stops.
func withAPIServer(m *testing.M, stops ...func() error) int {
	ctrl.SetLogger(logr.Discard())
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goredis.SetLogger(quiet{}) // the tests stop servers, so connection errors are expected
	config, stop, err := cluster.ControlPlane()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		for _, stop := range append(stops, stop) {
			if err := stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}()
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

// lastStall is when a timer of this process, which also runs the load pods, was last 50 ms late.
var lastStall atomic.Pointer[time.Time]

// stalledSince reports whether the machine has stalled after an instant.
func stalledSince(from time.Time) bool {
	at := lastStall.Load()
	return at != nil && at.After(from)
}

func watchMachine() {
	for began := time.Now(); ; {
		await.Pass(10*time.Millisecond, "a timer that is late shows a stall")
		now := time.Now()
		if now.Sub(began) > 60*time.Millisecond {
			lastStall.Store(&now)
		}
		began = now
	}
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// reserveBlock reserves 127.B.0.0/16 for this process: ports are fixed, so test binaries that run at the same time need
// different addresses.
// Other processes detect the reservation by the listener that it returns.
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

// placeOn returns a place on the cluster that a test needs; nil = newPlace.
func placeOn(t *testing.T, on func(*testing.T) *place) *place {
	t.Helper()
	if on == nil {
		on = newPlace
	}
	return on(t)
}

func newPlaceOn(t *testing.T, config *rest.Config, to client.WithWatch) *place {
	t.Helper()
	// cleanups run in reverse order: background users of temporary directories end before the directories are removed
	t.TempDir()
	n := apiServer.next.Add(1)
	p := &place{
		t: t, namespace: fmt.Sprintf("controllers-%d", n), config: config, client: to,
		subnet: fmt.Sprintf("127.%d.%d.", apiServer.block, n), lookEvery: 300 * time.Millisecond, patience: 5 * time.Minute,
	}
	p.operate = p.startManager
	p.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}})
	return p
}
