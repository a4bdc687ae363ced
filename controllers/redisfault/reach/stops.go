package reach

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/target/credentials"
)

// stopsOf returns the stop conditions of a fault; nil if it has none.
func (r *Reach) stopsOf(f *v1alpha1.RedisFault) *faultrun.Stops {
	if f.Spec.StopIf == nil {
		return nil
	}
	f = f.DeepCopy()
	return &faultrun.Stops{
		Spec: f.Spec.StopIf,
		Live: func(p faultrun.Progress) (impact.Live, time.Duration, error) {
			return r.liveFigures(f,
				p)
		},
		Query: func(ctx context.Context, q *v1alpha1.StopQuery) *v1alpha1.Breach {
			return r.evaluate(ctx, f.Namespace, q)
		},
	}
}

// CheckStops reports whether the stop conditions let the fault be injected. If not, the outcome is
// what to do.
func (r *Reach) CheckStops(s *scope.Fault) (o state.Outcome, pass bool) {
	conditions := r.stopsOf(s.Fault)
	if conditions == nil {
		return state.Outcome{}, true
	}
	run := s.Run
	breach, known := r.Term.CheckStops(s.Fault, conditions, func() (live *impact.Live) {
		run.Read(func(series *merged.Series) { live = new(impact.Lately(series)) })
		return live
	})
	if breach == nil {
		return state.Outcome{}, known
	}
	s.Fault.Status.Breach = breach
	return state.Outcome{
		Problem: &problem.Problem{
			Reason:  v1alpha1.ReasonStopConditionMet,
			Message: breach.Message + ": the fault was not injected",
			Lasting: true,
		},
		Ended:  true,
		Failed: true,
	}, false
}

// liveFigures reads the record of the load that measures a fault.
func (r *Reach) liveFigures(
	f *v1alpha1.RedisFault, p faultrun.Progress,
) (live impact.Live, behind time.Duration, err error) {
	test := &v1alpha1.RedisLoadTest{}
	ctx, cancel := context.WithTimeout(context.Background(), faultrun.ReadTimeout)
	defer cancel()
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: scope.LoadTestName(f)},
		test); err != nil {
		return live, 0, fmt.Errorf("read RedisLoadTest %s: %w", scope.LoadTestName(f), err)
	}
	run := r.Runs.Find(test.UID)
	status := &v1alpha1.RedisFaultStatus{}
	p.Into(status)
	read := test.Status.StartTime != nil && run.Read(func(series *merged.Series) {
		at := impact.Fault{
			At:          state.InjectedAfter(status, test.Status.StartTime.Time),
			Uncertainty: series.ClockUncertainty,
		}
		live = impact.LiveOf(series, at, impact.Options{
			MeasuredFrom: scope.MeasuredFrom(test),
			Planned:      children.Planned(&test.Spec),
		})
		if now, begun := run.Elapsed(); begun && !series.Ended() {
			behind = now - live.End
		}
	})
	if !read {
		return live, 0, faultrun.ErrNoRecord
	}
	return live, behind, nil
}

// evaluate evaluates a query; nil if its result is within the limit.
func (r *Reach) evaluate(
	ctx context.Context, namespace string, q *v1alpha1.StopQuery,
) *v1alpha1.Breach {
	field := "spec.stopIf.queries[" + q.Name + "]"
	timeout := min(q.Every.Duration*9/10, faultrun.SlowestQuery)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	server, err := credentials.Prometheus(ctx, r.Client, namespace, field+".prometheus", &q.Prometheus)
	if err != nil {
		return faultrun.BreachOf(field, false, err.Error())
	}
	got, err := r.Prometheus.Query(ctx, server, q.Query, timeout)
	switch {
	case err != nil:
		return faultrun.BreachOf(field, false, err.Error())
	case q.Above != nil && got.Greatest > number(*q.Above):
		return faultrun.BreachOf(field, true,
			fmt.Sprintf("the result is %s, above %s", text(got.Greatest), *q.Above))
	case q.Below != nil && got.Least < number(*q.Below):
		return faultrun.BreachOf(field, true,
			fmt.Sprintf("the result is %s, below %s", text(got.Least), *q.Below))
	}
	return nil
}

// number parses a limit; its pattern in the CRD lets nothing else pass.
func number(limit string) float64 {
	n, _ := strconv.ParseFloat(limit, 64)
	return n
}

func text(x float64) string {
	return strconv.FormatFloat(x, 'g', 6, 64)
}
