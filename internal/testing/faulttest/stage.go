//go:build integration

package faulttest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// Patient is the timeout of logins: on a busy machine a shorter one would make servers seem not to answer.
const Patient = 10 * time.Second

// Stage is a namespace whose pods are real servers on loopback; the cluster is the fake one of World.
type Stage struct {
	*World
	kinds  contract.Kinds
	choose Chooser
	Real   *topology.Real
	Login  redis.Login
}

// NewStage creates an empty namespace for faults of some kinds.
func NewStage(t *testing.T, kinds contract.Kinds, choose Chooser) *Stage {
	t.Helper()
	s := &Stage{
		World:  NewWorld(t),
		kinds:  kinds,
		choose: choose,
		Real:   topology.NewReal(),
		Login:  redis.Login{Timeout: Patient},
	}
	t.Cleanup(s.Real.Close)
	return s
}

// NewHostedStage creates a namespace with one server, in the pod redis-0. The tests of a package share the server.
func NewHostedStage(t *testing.T, kinds contract.Kinds, choose Chooser) (*Stage, *redistest.Server) {
	t.Helper()
	s, server := NewStage(t, kinds, choose), redistest.Shared(t)
	s.Host("redis-0", server, nil)
	return s, server
}

// Host creates the pod of a server. Select finds it by app=redis.
func (s *Stage) Host(name string, server *redistest.Server, change func(*corev1.Pod)) *corev1.Pod {
	s.T.Helper()
	return s.Pod(name, "uid-"+name, "127.0.0.1", "", func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports[0].ContainerPort = int32(server.Port)
		if change != nil {
			change(p)
		}
	})
}

// Aim makes the injector of a fault and the record of the first target, as the controller does before it injects.
func (s *Stage) Aim(spec *v1alpha1.RedisFaultSpec) (contract.Injector, *v1alpha1.FaultTarget) {
	s.T.Helper()
	injector, target, err := s.TryAim(spec)
	if err != nil {
		s.T.Fatal(err)
	}
	return injector, target
}

// TryAim is Aim for a fault that may be refused.
func (s *Stage) TryAim(spec *v1alpha1.RedisFaultSpec) (contract.Injector, *v1alpha1.FaultTarget, error) {
	s.T.Helper()
	injector, err := s.kinds.For(spec, s.Deps())
	if err != nil {
		return nil, nil, err
	}
	found, err := s.choose(s.T.Context(), On(s.Deps(), ByPods(map[string]string{"app": "redis"})).Redis, spec,
		injector.Traits())
	if err != nil {
		return injector, nil, err
	}
	return injector, &found[0], injector.Preflight(s.T.Context(), &found[0])
}

// Reborn returns a new injector, as after a restart of the operator: without state in memory and open connections.
func (s *Stage) Reborn(spec *v1alpha1.RedisFaultSpec) contract.Injector {
	s.T.Helper()
	s.Real.Close()
	injector, err := s.kinds.For(spec, s.Deps())
	if err != nil {
		s.T.Fatal(err)
	}
	return injector
}

// Deps are what a fault called break acts on.
func (s *Stage) Deps() contract.Deps {
	deps := s.World.Deps()
	deps.Servers, deps.Login = s.Confine(s.Real), s.Login
	deps.Owner = metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(),
		Kind:       "RedisFault",
		Name:       "break",
		UID:        "fault-uid",
		Controller: new(true),
	}
	return deps
}
