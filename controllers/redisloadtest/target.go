package redisloadtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/target/paging"
)

// observePlan builds the plan from the spec. After the start it uses the addresses in the status
// and does not read what the spec refers to.
func (r *Reconciler) observePlan(ctx context.Context, s *scope.Test) error {
	var addresses []string
	var err error
	if s.Seen.StartedAt.IsZero() {
		addresses, err = r.addresses(ctx, s.Test)
		if err == nil {
			_, err = target.LoginFor(ctx, r.Client, s.Test.Namespace, &s.Test.Spec.Target)
		}
		if err == nil {
			err = r.checkSentinels(ctx, s.Test)
		}
	} else if s.Test.Status.Target != nil {
		addresses = s.Test.Status.Target.Addresses
	}
	if found, err := problem.From(err); found != nil || err != nil {
		s.Seen.Problem = found
		return err
	}
	var invalid *plan.Error
	if s.Plan, err = children.Plan(s.Test, addresses); errors.As(err, &invalid) {
		s.Seen.Problem = &problem.Problem{
			Reason:  v1alpha1.ReasonInvalidSpec,
			Message: invalid.Message,
			Lasting: true,
		}
		return nil
	} else if err != nil {
		return fmt.Errorf("plan the load: %w", err)
	}
	return nil
}

// addresses returns the addresses to load: the Service's, those of the spec, or the pods'; none for
// a load without a target.
func (r *Reconciler) addresses(
	ctx context.Context, test *v1alpha1.RedisLoadTest,
) ([]string, error) {
	spec := &test.Spec.Target
	switch {
	case !spec.IsSet():
		return nil, nil
	case len(spec.Addresses) > 0:
		return spec.Addresses, nil
	case spec.Service != nil:
		return r.serviceAddress(ctx, test.Namespace, "spec.target.service", spec.Service.Name,
			spec.Service.Port)
	case spec.Sentinel != nil && spec.PodSelector == nil:
		return nil, nil // the load pods query the sentinels for the servers
	}
	redis := target.Redis{
		Namespace: test.Namespace,
		Live:      r.APIReader,
		Spec:      spec,
	}
	all, err := redis.AllPods(ctx)
	if err != nil {
		return nil, err
	}
	now := r.Clock.Now()
	pods, err := redis.Ready(all, pendingSince(test, now), now,
		test.Spec.Pods.StartDeadline.Duration/2)
	if err != nil {
		return nil, err
	}
	found := make([]string, len(pods))
	for i := range pods {
		found[i] = redis.Address(&pods[i])
	}
	return found, nil
}

// checkSentinels returns a Problem if the Service or a Secret of the target's sentinels is missing.
func (r *Reconciler) checkSentinels(ctx context.Context, test *v1alpha1.RedisLoadTest) error {
	s := test.Spec.Target.Sentinel
	if s == nil {
		return nil
	}
	if s.Service != nil {
		_, err := r.serviceAddress(ctx, test.Namespace, "spec.target.sentinel.service", s.Service.Name,
			s.Service.Port)
		if err != nil {
			return err
		}
	}
	_, err := target.LoginFor(ctx, r.Client, test.Namespace, &v1alpha1.RedisTarget{
		Auth: s.Auth,
		TLS:  s.TLS,
	})
	if found, ok := errors.AsType[*problem.Problem](err); ok {
		found.Message = strings.ReplaceAll(found.Message, "spec.target.", "spec.target.sentinel.")
	}
	return err
}

// serviceAddress returns the DNS name and port of a Service. It returns a Problem if the Service
// has no ready endpoint. Field is the path in the spec.
func (r *Reconciler) serviceAddress(
	ctx context.Context, namespace, field, name string, port int32,
) ([]string, error) {
	var service corev1.Service
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &service)
	if apierrors.IsNotFound(err) {
		return nil, &problem.Problem{
			Reason:  v1alpha1.ReasonServiceNotFound,
			Message: fmt.Sprintf("%s.name: there is no Service %q in namespace %s", field, name, namespace),
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read Service %s: %w", name, err)
	}
	if !hasPort(&service, port) {
		return nil, &problem.Problem{
			Reason:  v1alpha1.ReasonServiceNotFound,
			Message: fmt.Sprintf("%s.port: Service %q has no port %d", field, name, port),
		}
	}
	if service.Spec.Type != corev1.ServiceTypeExternalName {
		ready, err := r.hasEndpoint(ctx, &service)
		if err != nil {
			return nil, err
		}
		if !ready {
			return nil, &problem.Problem{
				Reason: v1alpha1.ReasonNoEndpoints,
				Message: fmt.Sprintf(
					"%s.name: Service %q has no ready endpoint, so %s cannot be reached: are the Redis pods ready, and does its selector match them?",
					field, name, net.JoinHostPort(name, strconv.Itoa(int(port)))),
			}
		}
	}
	return []string{net.JoinHostPort(name+"."+namespace+".svc", strconv.Itoa(int(port)))}, nil
}

func hasPort(service *corev1.Service, port int32) bool {
	for _, p := range service.Spec.Ports {
		if p.Port == port {
			return true
		}
	}
	return service.Spec.Type == corev1.ServiceTypeExternalName ||
		service.Spec.ClusterIP == corev1.ClusterIPNone
}

func (r *Reconciler) hasEndpoint(ctx context.Context, service *corev1.Service) (bool, error) {
	usable := func(e discoveryv1.Endpoint) bool {
		return e.Conditions.Ready == nil || *e.Conditions.Ready || service.Spec.PublishNotReadyAddresses
	}
	var page discoveryv1.EndpointSliceList
	found := false
	err := paging.Each(ctx, r.APIReader, &page, func() bool {
		found = slices.ContainsFunc(page.Items, func(slice discoveryv1.EndpointSlice) bool {
			return slices.ContainsFunc(slice.Endpoints, usable)
		})
		page.Items = nil // the next page must not be decoded over these
		return !found
	}, client.InNamespace(service.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: service.Name})
	if err != nil {
		return false, fmt.Errorf("read endpoints of Service %s: %w", service.Name, err)
	}
	return found, nil
}
