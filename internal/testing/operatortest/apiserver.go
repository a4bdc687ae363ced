//go:build integration

package operatortest

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

	"github.com/redquake/redquake/controllers"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/cluster"
)

// apiServer is a real kube-apiserver with its etcd, shared by all tests of a package. Each test has
// its own namespace and loopback addresses.
var apiServer struct {
	config *rest.Config
	client client.WithWatch // not cached
	block  byte             // 127.block.x.y are this process's
	next   atomic.Int32     // x
}

// Main runs the tests of a package with an API server, and returns the exit code. In the end it
// calls stops.
func Main(m *testing.M, stops ...func() error) int {
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
	if apiServer.client, err = client.NewWithWatch(config, client.Options{
		Scheme: controllers.NewScheme(),
	}); err != nil {
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

// StalledSince reports whether the machine has stalled after an instant.
func StalledSince(from time.Time) bool {
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

// reserveBlock reserves 127.B.0.0/16 for this process: ports are fixed, so test binaries that run
// at the same time need different addresses.
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

// NewPlace returns a namespace of its own on the shared API server.
func NewPlace(t *testing.T) *Place {
	t.Helper()
	return NewPlaceOn(t, apiServer.config, apiServer.client)
}

// PlaceOn returns a place on the cluster that a test needs; nil = NewPlace.
func PlaceOn(t *testing.T, on func(*testing.T) *Place) *Place {
	t.Helper()
	if on == nil {
		on = NewPlace
	}
	return on(t)
}

// OnAPIServer returns a place of its own, in which the scenario has begun with a real server, whose
// options these are.
func (s Scenario) OnAPIServer(t *testing.T, options ...string) *Place {
	t.Helper()
	p := NewPlace(t)
	p.Redis = StartRedis(p, options...)
	StartKubelet(p, nil)
	s.begin(p)
	return p
}

// NewPlaceOn is NewPlace on another API server.
func NewPlaceOn(t *testing.T, config *rest.Config, to client.WithWatch) *Place {
	t.Helper()
	// cleanups run in reverse order: background users of temporary directories end before the
	// directories are removed
	t.TempDir()
	n := apiServer.next.Add(1)
	p := &Place{
		T:         t,
		Config:    config,
		Client:    to,
		Subnet:    fmt.Sprintf("127.%d.%d.", apiServer.block, n),
		LookEvery: 300 * time.Millisecond,
		Patience:  5 * time.Minute,
	}
	p.Operate = p.startManager
	// packages share an API server
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "operator-"}}
	p.Create(namespace)
	p.Namespace = namespace.Name
	return p
}
