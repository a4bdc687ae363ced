package bottleneck

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/merged"
)

// Of returns the input for the record of a plan's load, without the fields that are not in the
// plan.
func Of(plan *plan.Plan, series *merged.Series) Input {
	return Input{
		Series:       series,
		MeasuredFrom: plan.Shape.MeasuredFrom(),
		AddedLatency: plan.Client.AddedLatency,
		Backend:      backendOf(&plan.Workload),
		Times:        timesOf(&plan.Workload),
		Redis:        placeOf(plan),
		NotAsked:     notAsked(plan),
		Stamped:      plan.KernelStamps(),
	}
}

// placeOf returns how requests reach the target of a plan.
func placeOf(p *plan.Plan) Place {
	switch w := &p.Workload; {
	case !p.Target.IsSet(), w.CacheAside != nil && w.CacheAside.Mode == plan.DatabaseOnly:
		return Apart
	case w.HTTP != nil:
		return Behind
	}
	return Direct
}

// notAsked returns why a plan does not observe its target; "" = it does, or has none.
func notAsked(p *plan.Plan) string {
	if p.Target.IsSet() && p.Info == 0 {
		return "observe.redisInfo is 0s"
	}
	return ""
}

// NotObserved returns why servers of a plan's target, or all of them, have no readings in the
// record; "" = all have, there is no target, or it is not known yet.
func NotObserved(p *plan.Plan, series *merged.Series) string {
	if !p.Target.IsSet() {
		return ""
	}
	if reason := notAsked(p); reason != "" && len(series.Servers()) == 0 {
		return reason
	}
	return unread(series)
}

// unread lists the servers without a reading, and why. The address is left out if it is the only
// server.
func unread(series *merged.Series) string {
	failed := series.Unobserved()
	if len(failed) == 1 && len(series.Servers()) == 0 {
		return failed[0].Reason
	}
	var list []string
	for _, u := range failed[:min(len(failed), unreadShown)] {
		list = append(list, cmp.Or(u.Address, "the target")+": "+u.Reason)
	}
	if more := len(failed) - unreadShown; more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	return strings.Join(list, "; ")
}

// unreadShown is the number of servers that are named as unread.
const unreadShown = 3

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
