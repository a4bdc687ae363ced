// Package powertest is a power hook for tests: instead of machines it switches the nodes of an API server that has no
// kubelets.
package powertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/powerhook"
)

// Grid is the power of nodes: their conditions, and the leases of their kubelets.
type Grid struct {
	Client client.Client

	mu     sync.Mutex
	asked  []powerhook.Request
	on     map[string]bool // nodes that were switched on
	refuse error           // instead of what is asked
}

// Asked are the requests so far.
func (g *Grid) Asked() []powerhook.Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.asked)
}

// Refuse has the grid answer with an error, and do nothing; nil = no more.
func (g *Grid) Refuse(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuse = err
}

// Switch switches the power of a node at once.
func (g *Grid) Switch(ctx context.Context, asked powerhook.Request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, asked)
	if g.refuse != nil {
		return g.refuse
	}
	if g.on == nil {
		g.on = map[string]bool{}
	}
	g.on[asked.Node] = asked.Power == powerhook.On
	if !g.on[asked.Node] { // what its kubelet did last
		if err := g.renew(ctx, asked.Node); err != nil {
			return err
		}
	}
	// one that was removed from the cluster has no conditions, but a machine
	return client.IgnoreNotFound(SetReady(ctx, g.Client, asked.Node, asked.Power == powerhook.On))
}

// SetReady sets the condition Ready of a node.
func SetReady(ctx context.Context, c client.Client, name string, ready bool) error {
	for {
		node := &corev1.Node{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		condition := corev1.NodeCondition{
			Type:               corev1.NodeReady,
			Status:             corev1.ConditionTrue,
			Reason:             "KubeletReady",
			LastTransitionTime: metav1.Now(),
		}
		if !ready {
			condition.Status, condition.Reason = corev1.ConditionUnknown, "NodeStatusUnknown"
		}
		node.Status.Conditions = []corev1.NodeCondition{condition}
		if err := c.Status().Update(ctx, node); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// Beat renews the leases of the nodes that were switched on, as their kubelets do.
func (g *Grid) Beat(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var failures []error
	for name, on := range g.on {
		if on {
			failures = append(failures, g.renew(ctx, name))
		}
	}
	return errors.Join(failures...)
}

func (g *Grid) renew(ctx context.Context, name string) error {
	lease := &coordinationv1.Lease{}
	err := g.Client.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: name}, lease)
	at := time.Now()
	if last := lease.Spec.RenewTime; last != nil && !at.After(last.Time) { // in virtual time
		at = last.Add(time.Millisecond)
	}
	lease.Spec.RenewTime = &metav1.MicroTime{Time: at}
	switch {
	case apierrors.IsNotFound(err):
		lease.ObjectMeta = metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}
		return g.Client.Create(ctx, lease)
	case err == nil:
		return g.Client.Update(ctx, lease)
	}
	return err
}

// Serve serves the grid by HTTP, and returns its URL. Its kubelets renew their leases until the test ends.
func (g *Grid) Serve(t testing.TB) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked powerhook.Request
		err := json.NewDecoder(r.Body).Decode(&asked)
		if err == nil {
			err = g.Switch(r.Context(), asked)
		}
		if err != nil {
			http.Error(w, fmt.Sprint(err), http.StatusServiceUnavailable)
		}
	}))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		beats := time.NewTicker(200 * time.Millisecond)
		defer beats.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-beats.C:
				_ = g.Beat(ctx) // the next one tries it again
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		server.Close()
	})
	return server.URL
}
