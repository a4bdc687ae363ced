//go:build e2e

package soak

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// beat creates a suspended load test, waits for its status, and deletes it.
func (s *soak) beat(ctx context.Context, n int) {
	p := Pulse{Name: fmt.Sprintf("pulse-%d", n)}
	test := s.suspended(p.Name)
	for ctx.Err() == nil && p.Created.IsZero() {
		if err := s.Create(ctx, test); err == nil {
			p.Created = time.Now()
		} else {
			pause(ctx)
			// the first may exist without an answer to this test
			test = s.suspended(fmt.Sprintf("%s-%d", p.Name, time.Now().UnixMilli()))
		}
	}
	if p.Created.IsZero() {
		return
	}
	p.Answered = s.answered(ctx, test)
	p.Watched = time.Now()
	s.locked(func() { s.facts.Pulses = append(s.facts.Pulses, p) })
	_ = s.Delete(ctx, test) // its namespace is deleted at the end
}

func (s *soak) suspended(name string) *v1alpha1.RedisLoadTest {
	made := maker{dice: &dice{newRand(1)}, latest: map[string]lately{}}
	test := &v1alpha1.RedisLoadTest{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.pulses, Name: name},
		Spec:       made.loadSpec(Worlds[0], time.Minute),
	}
	test.Spec.Suspend = true
	return test
}

// answered is when the operator has written to the status of an object; zero = it has not when ctx ended.
func (s *soak) answered(ctx context.Context, test *v1alpha1.RedisLoadTest) time.Time {
	for ctx.Err() == nil {
		now := &v1alpha1.RedisLoadTest{}
		if err := s.Get(ctx, client.ObjectKeyFromObject(test), now); err == nil {
			if c := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionComplete); c != nil &&
				c.Reason == v1alpha1.ReasonSuspended {
				return time.Now()
			}
		}
		pause(ctx)
	}
	return time.Time{}
}

// firstAnswer is how long a new object takes after the plan; negative = it has no answer.
func (s *soak) firstAnswer() time.Duration {
	ctx, cancel := context.WithTimeout(s.Context(), 2*time.Minute)
	defer cancel()
	test := s.suspended("at-the-end")
	if err := s.Create(ctx, test); err != nil {
		s.Errorf("create an object at the end: %v", err)
		return -1
	}
	began := time.Now()
	at := s.answered(ctx, test)
	if at.IsZero() {
		return -1
	}
	return at.Sub(began)
}
