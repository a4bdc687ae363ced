package redisloadtest

import (
	"context"
	"time"

	"github.com/redquake/redquake/controllers/podmetrics"
	"github.com/redquake/redquake/internal/digest"
)

// podMetricsTimeout limits all calls of the metrics API of one reconcile.
const podMetricsTimeout = 2 * time.Second

// observeMetrics adds the readings of the observed pods to the record while the load runs. Without
// the metrics API the status says so: the load does not depend on it.
func (r *Reconciler) observeMetrics(ctx context.Context, s *scope) {
	now := r.Clock.Now()
	if len(s.test.Spec.Observe.Pods) == 0 || !s.run.Begun() || s.session.Finished ||
		now.Before(s.seen.StartedAt) || now.Sub(s.run.MetricsAt) < podmetrics.Every {
		return
	}
	s.run.MetricsAt, s.podMessages = now, map[string]string{}
	ctx, cancel := context.WithTimeout(ctx, podMetricsTimeout)
	defer cancel()
	reader := podmetrics.Reader{APIReader: r.APIReader, Clock: r.Clock}
	for i := range s.test.Spec.Observe.Pods {
		observed := &s.test.Spec.Observe.Pods[i]
		uses, message := reader.Uses(ctx, s.test.Namespace, observed, s.seen.StartedAt)
		s.run.Session.AddPodUses(uses)
		s.podMessages[observed.Name] = digest.Truncate(message, 512)
	}
}
