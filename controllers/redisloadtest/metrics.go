package redisloadtest

import (
	"context"
	"time"

	"github.com/redquake/redquake/controllers/podmetrics"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/internal/digest"
)

// podMetricsTimeout limits all calls of the metrics API of one reconcile.
const podMetricsTimeout = 2 * time.Second

// observeMetrics adds the readings of the observed pods to the record while the load runs. Without
// the metrics API the status says so: the load does not depend on it.
func (r *Reconciler) observeMetrics(ctx context.Context, s *scope.Test) {
	now := r.Clock.Now()
	if len(s.Test.Spec.Observe.Pods) == 0 || !s.Run.Begun() || s.Session.Finished ||
		now.Before(s.Seen.StartedAt) || now.Sub(s.Run.MetricsAt) < podmetrics.Every {
		return
	}
	s.Run.MetricsAt, s.PodMessages = now, map[string]string{}
	ctx, cancel := context.WithTimeout(ctx, podMetricsTimeout)
	defer cancel()
	reader := podmetrics.Reader{APIReader: r.APIReader, Clock: r.Clock}
	for i := range s.Test.Spec.Observe.Pods {
		observed := &s.Test.Spec.Observe.Pods[i]
		uses, message := reader.Uses(ctx, s.Test.Namespace, observed, s.Seen.StartedAt)
		s.Run.Session.AddPodUses(uses)
		s.PodMessages[observed.Name] = digest.Truncate(message, 512)
	}
}
