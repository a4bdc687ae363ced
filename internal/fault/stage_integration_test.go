//go:build integration

package fault

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// patient is the timeout of logins: a busy machine must not pass for a server that does not answer.
const patient = 5 * time.Second

// stage is a namespace whose pods are real servers on loopback; the cluster deps them is the fake one of world.
type stage struct {
	*world
	kinds  contract.Kinds
	choose Chooser
	real   *topology.Real
	login  topology.Login
}

func newStage(t *testing.T, kinds contract.Kinds, choose Chooser) *stage {
	t.Helper()
	s := &stage{world: newWorld(t), kinds: kinds, choose: choose, real: topology.NewReal(), login: topology.Login{Timeout: patient}}
	t.Cleanup(s.real.Close)
	return s
}

// host makes the pod of a server. Select finds it by app=redis.
func (s *stage) host(name string, server *redistest.Server, change func(*corev1.Pod)) *corev1.Pod {
	s.t.Helper()
	return s.pod(name, "uid-"+name, "127.0.0.1", "", func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports[0].ContainerPort = int32(server.Port)
		if change != nil {
			change(p)
		}
	})
}

func (s *stage) deps() contract.Deps {
	deps := s.world.deps()
	deps.Servers, deps.Login = s.real, s.login
	deps.Owner = metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RedisFault", Name: "break", UID: "fault-uid", Controller: new(true)}
	return deps
}

// aim makes the injector of a fault and the record of the first target, as the controller does before it injects.
func (s *stage) aim(spec *v1alpha1.RedisFaultSpec) (contract.Injector, *v1alpha1.FaultTarget) {
	s.t.Helper()
	injector, target, err := s.tryAim(spec)
	if err != nil {
		s.t.Fatal(err)
	}
	return injector, target
}

// tryAim is aim for a fault that may be refused.
func (s *stage) tryAim(spec *v1alpha1.RedisFaultSpec) (contract.Injector, *v1alpha1.FaultTarget, error) {
	s.t.Helper()
	injector, err := s.kinds.For(spec, s.deps())
	if err != nil {
		return nil, nil, err
	}
	found, err := s.choose(s.t.Context(), on(s.deps(), byPods(map[string]string{"app": "redis"})).Redis, spec, injector.Traits())
	if err != nil {
		return injector, nil, err
	}
	return injector, &found[0], injector.Preflight(s.t.Context(), &found[0])
}

// reborn is the injector as another process makes it: nothing in memory, no connection open.
func (s *stage) reborn(spec *v1alpha1.RedisFaultSpec) contract.Injector {
	s.t.Helper()
	s.real.Close()
	injector, err := s.kinds.For(spec, s.deps())
	if err != nil {
		s.t.Fatal(err)
	}
	return injector
}
