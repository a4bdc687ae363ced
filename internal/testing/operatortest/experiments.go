package operatortest

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
)

// NewExperiment is an experiment on the latency that is added to each request: 5 and 10 ms, three
// times each.
func NewExperiment(
	name, address string, change func(*v1alpha1.RedisExperiment),
) *v1alpha1.RedisExperiment {
	e := &v1alpha1.RedisExperiment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.RedisExperimentSpec{
			Template: v1alpha1.LoadTestTemplate{Spec: NewLoadTest("", address, nil).Spec},
			Matrix: []v1alpha1.ExperimentParameter{
				{
					Name:   "latency",
					Path:   "client.addedLatency",
					Values: []intstr.IntOrString{intstr.FromString("5ms"), intstr.FromString("10ms")},
				},
			},
			Repeat:  4,
			Compare: v1alpha1.ExperimentComparison{Figures: []v1alpha1.ComparedFigure{"latencyP99"}},
		},
	}
	if change != nil {
		change(e)
	}
	return e
}

// Experiment reads an experiment.
func (p *Place) Experiment(name string) *v1alpha1.RedisExperiment {
	p.T.Helper()
	e := &v1alpha1.RedisExperiment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Read(e)
	return e
}

// ExperimentEnds waits until an experiment is over.
func (p *Place) ExperimentEnds(name string, within time.Duration) *v1alpha1.RedisExperiment {
	p.T.Helper()
	var e *v1alpha1.RedisExperiment
	p.Until("the experiment has ended", within, func() bool {
		e = p.Experiment(name)
		return state.IsFinished(e.Status.Conditions)
	}, func() string {
		e := p.Experiment(name)
		return fmt.Sprintf("%s, %+v", Where(e.Status.Conditions), e.Status.Run)
	})
	return e
}

// RunsOf are the load tests of an experiment, in the order of their names.
func (p *Place) RunsOf(name string) []v1alpha1.RedisLoadTest {
	p.T.Helper()
	var all v1alpha1.RedisLoadTestList
	p.MustChange(p.Client.List(context.Background(), &all))
	return slices.DeleteFunc(all.Items, func(test v1alpha1.RedisLoadTest) bool {
		return test.Labels[v1alpha1.LabelExperiment] != name
	})
}

// Faults are all of the place.
func (p *Place) Faults() []v1alpha1.RedisFault {
	p.T.Helper()
	var all v1alpha1.RedisFaultList
	p.MustChange(p.Client.List(context.Background(), &all, client.InNamespace(p.Namespace)))
	return all.Items
}
