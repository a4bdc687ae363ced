package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"
)

// An informer without rights starts empty after a while. Once it has listed, a refusal does not empty it.
func TestInformerWithoutRights(t *testing.T) {
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no such right"))
	now := testingclock.NewFakePassiveClock(time.Now())
	var result error
	l := &lenient{clock: now, of: &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.PodList{Items: []corev1.Pod{{}}}, result
		},
	}}
	for _, step := range []struct {
		name   string
		passes time.Duration
		result error
		pods   int // -1 = an error
	}{
		{"refused at first", 0, denied, -1},
		{"for less than the time", patientFor - 1, denied, -1},
		{"for longer", 1, denied, 0},
		{"another error", time.Second, errors.New("no answer"), -1},
		{"still refused", time.Second, denied, 0},
		{"bound", time.Second, nil, 1},
		{"refused again", time.Hour, denied, -1},
	} {
		now.SetTime(now.Now().Add(step.passes))
		result = step.result
		list, err := l.list(t.Context(), metav1.ListOptions{})
		if (err != nil) != (step.pods < 0) {
			t.Errorf("%s: %v", step.name, err)
		} else if err == nil && meta.LenList(list) != step.pods {
			t.Errorf("%s: %d pods", step.name, meta.LenList(list))
		}
	}
}
