package bottleneck

import (
	"net/url"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
)

// Of returns the input for the record of a plan's load, without the fields that are not in the plan.
func Of(plan *plan.Plan, series *record.Series) Input {
	return Input{
		Series: series, MeasuredFrom: plan.Shape.MeasuredFrom(), AddedLatency: plan.Client.AddedLatency,
		Backend: backendOf(&plan.Workload), Times: timesOf(&plan.Workload),
	}
}

func timesOf(w *plan.Workload) *Times {
	if w.CacheAside == nil {
		return nil
	}
	return &Times{Backend: plan.TallyDatabaseMicros, Redis: plan.TallyCacheMicros}
}

// backendOf names the backend of a workload apart from Redis; "" = none.
func backendOf(w *plan.Workload) string {
	switch {
	case w.CacheAside != nil && w.CacheAside.Database.Driver == "mysql":
		return "MySQL or MariaDB"
	case w.CacheAside != nil && w.CacheAside.Database.Driver == "postgres":
		return "PostgreSQL"
	case w.CacheAside != nil:
		return "the database"
	case w.HTTP != nil:
		if u, err := url.Parse(w.HTTP.URL); err == nil && u.Host != "" {
			return "the API at " + u.Host
		}
		return "the API"
	}
	return ""
}
