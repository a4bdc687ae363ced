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
	reason := notAsked(p)
	if reason != "" && len(series.Servers()) == 0 {
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
		u, err := url.Parse(w.HTTP.URL)
		if err == nil && u.Host != "" {
			return "the API at " + u.Host
		}
		return "the API"
	}
	return ""
}

// Reading is a figure of a component that Find looks at. From the limit on, the component is the
// bottleneck, unless one before it is, or what else Find compares says otherwise.
type Reading struct {
	Component Component
	What      string // the figure, in words
	Found     float64
	Limit     float64
	Share     bool // both are shares, from 0 to 1; otherwise counts
}

// Reached reports whether the figure is at its limit.
func (r *Reading) Reached() bool {
	return r.Found >= r.Limit
}

// Looked returns the figures that Find looks at, of the components of which there are any.
func Looked(in Input) (list []Reading) {
	e := gather(in)
	add := func(c Component, what string, found, limit float64, share bool) {
		list = append(list, Reading{c, what, found, limit, share})
	}
	if len(e.generators) > 0 {
		used, throttled := 0.0, 0.0
		for _, g := range e.generators {
			share, _ := g.share()
			held := func(u usage) float64 { return u.throttled / u.seconds }
			used = max(used, share(g.busiest(share)))
			throttled = max(throttled, held(g.busiest(held)))
		}
		add(LoadGenerator, "CPU of the busiest load pod", used, saturated, true)
		add(LoadGenerator, "of the time held back by its CPU limit", throttled, throttledShare, true)
	}
	if e.isRoundTrip() {
		add(Network, "round trip, of the median latency", float64(e.roundTrip)/float64(e.median()),
			roundTripShare, true)
	}
	if len(e.observed) > 0 {
		most := 0.0
		for _, o := range e.observed {
			most = max(most, o.share())
		}
		add(Application, "CPU of the busiest observed pod", most, saturated, true)
	}
	if len(e.servers) == 0 {
		return list
	}
	_, used := e.busiest(usage.cores)
	if in.ServerCPULimit > 0 {
		add(CPULimit, "Redis’ CPU, of its container’s limit", used.cores()/in.ServerCPULimit, saturated,
			true)
	}
	_, used = e.busiest(usage.mainThread)
	add(RedisMainThread, "main thread, of one core", used.mainThread(), saturated, true)
	var delayed, lacking, rejected float64
	for _, s := range e.servers {
		held := func(c *counter) float64 {
			if !s.lasted(c) || c == &s.clients.buffered && s.bufferedClients() == 0 {
				return 0 // an event
			}
			return c.seconds / s.total.seconds
		}
		delayed = max(delayed, held(&s.disk.delayedFsync), held(&s.disk.waiting))
		lacking = max(lacking, held(&s.memory.evicted), held(&s.memory.oom))
		c := &s.clients
		rejected = max(rejected, held(&c.rejected), held(&c.evicted), held(&c.buffered),
			held(&c.querying))
	}
	add(Disk, "of the time in which Redis waited for its disk", delayed, lastingShare, true)
	add(Memory, "of the time with evicted keys or refused commands", lacking, lastingShare, true)
	add(Clients, "of the time with rejected or closed connections", rejected, lastingShare, true)
	return list
}
