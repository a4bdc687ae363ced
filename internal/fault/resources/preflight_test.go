package resources

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

func TestResourcesPreflightRefuses(t *testing.T) {
	policy := func(name corev1.ResourceName) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
				{ResourceName: name, RestartPolicy: corev1.RestartContainer},
			}
		}
	}
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		own    corev1.ResourceRequirements
		limits map[corev1.ResourceName]string
		change func(*corev1.Pod)
		refuse error
		info   string
		reason string
		about  string
	}{
		"no limit": {
			own:    corev1.ResourceRequirements{Requests: quantities("cpu", "1")},
			limits: map[corev1.ResourceName]string{"cpu": "1"},
			reason: v1alpha1.ReasonNotSupported,
			about:  "no cpu limit",
		},
		"the same": {
			own:    guaranteed,
			limits: map[corev1.ResourceName]string{"cpu": "1000m"},
			reason: v1alpha1.ReasonInvalidSpec,
			about:  "already",
		},
		"nothing": {
			own:    guaranteed,
			limits: map[corev1.ResourceName]string{"cpu": "0"},
			reason: v1alpha1.ReasonInvalidSpec,
			about:  "spec.action.resources.cpu: 0",
		},
		"negative": {
			own:    guaranteed,
			limits: map[corev1.ResourceName]string{"memory": "-1"},
			reason: v1alpha1.ReasonInvalidSpec,
			about:  "spec.action.resources.memory: -1",
		},
		"restart for memory": {
			own:    guaranteed,
			limits: map[corev1.ResourceName]string{"memory": "128Mi"},
			change: policy("memory"),
			reason: v1alpha1.ReasonNotSupported,
			about:  "RestartContainer for memory",
		},
		"memory in use": {
			own:    guaranteed,
			limits: map[corev1.ResourceName]string{"memory": "57Mi"},
			reason: v1alpha1.ReasonInvalidSpec,
			about:  "used_memory_rss 60000000",
		},
		"memory unknown": {
			own:    guaranteed,
			limits: map[corev1.ResourceName]string{"memory": "57Mi"},
			info:   "role:master",
			reason: v1alpha1.ReasonNotSupported,
			about:  "does not show its memory",
		},
		"old server": {
			own:    guaranteed,
			limits: map[corev1.ResourceName]string{"cpu": "2"},
			refuse: apierrors.NewNotFound(pods, ""),
			reason: v1alpha1.ReasonNotSupported,
			about:  "Kubernetes 1.33",
		},
		"gate off": {
			own:    guaranteed,
			limits: map[corev1.ResourceName]string{"cpu": "2"},
			refuse: apierrors.NewMethodNotSupported(pods, "patch"),
			reason: v1alpha1.ReasonNotSupported,
			about:  "Kubernetes 1.33",
		},
		"class of service": {
			own:    guaranteed,
			limits: map[corev1.ResourceName]string{"cpu": "2"},
			refuse: apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "redis-0", nil),
			reason: v1alpha1.ReasonNotSupported,
			about:  "refuses: resize container",
		},
		"a quota, a webhook": {
			own:    guaranteed,
			limits: map[corev1.ResourceName]string{"cpu": "2"},
			refuse: apierrors.NewForbidden(pods, "redis-0", errors.New("exceeded quota")),
			reason: v1alpha1.ReasonNotSupported,
			about:  "exceeded quota",
		},
		"a silent server": {
			own:    guaranteed,
			limits: map[corev1.ResourceName]string{"memory": "128Mi"},
			info:   "-",
			reason: v1alpha1.ReasonInjectionFailed,
			about:  "cannot be read",
		},
		"no such a container": {
			own:    guaranteed,
			limits: map[corev1.ResourceName]string{"cpu": "2"},
			change: func(p *corev1.Pod) { p.Spec.Containers[0].Name = "other" },
			reason: v1alpha1.ReasonInvalidSpec,
			about:  "no container redis",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResizable(t, c.own, c.change)
			r.refuse = c.refuse
			if c.info != "" {
				r.Servers.Script("INFO memory", faulttest.Reply(c.info))
				if c.info == "-" {
					r.Servers.Kill("10.0.0.1:6379")
				}
			}
			problem := faulttest.ProblemOf(t, r.injector(c.limits).Preflight(t.Context(), r.target()))
			if problem.Reason != c.reason || !strings.Contains(problem.Message, c.about) ||
				problem.Lasting == (c.reason == v1alpha1.ReasonInjectionFailed) {
				t.Errorf("%+v, want %s about %q", problem, c.reason, c.about)
			}
			if r.patches != 0 {
				t.Error("Preflight resized")
			}
		})
	}
}

// Neither the policy of the other resource matters, nor the used memory if the limit grows.
func TestResourcesPreflightAccepts(t *testing.T) {
	r := newResizable(t, guaranteed, func(p *corev1.Pod) {
		p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
			{ResourceName: "memory", RestartPolicy: corev1.RestartContainer},
			{ResourceName: "cpu", RestartPolicy: corev1.NotRequired},
		}
	})
	if err := r.injector(map[corev1.ResourceName]string{"cpu": "2"}).Preflight(t.Context(), r.target()); err != nil {
		t.Error(err)
	}
	r = newResizable(t, guaranteed, nil)
	r.Servers.Kill("10.0.0.1:6379")
	if err := r.injector(map[corev1.ResourceName]string{"memory": "512Mi"}).Preflight(t.Context(),
		r.target()); err != nil {
		t.Error(err)
	}
}
