package bottleneck

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
	if _, used := e.busiest(usage.cores); in.ServerCPULimit > 0 {
		add(CPULimit, "Redis’ CPU, of its container’s limit", used.cores()/in.ServerCPULimit, saturated,
			true)
	}
	_, used := e.busiest(usage.mainThread)
	add(RedisMainThread, "main thread, of one core", used.mainThread(), saturated, true)
	var delayed, lacking, rejected float64
	for _, s := range e.servers {
		held := func(c *counter) float64 {
			if !s.lasted(c) || c == &s.buffered && s.bufferedClients() == 0 {
				return 0 // an event
			}
			return c.seconds / s.total.seconds
		}
		delayed = max(delayed, held(&s.delayedFsync), held(&s.waiting))
		lacking = max(lacking, held(&s.evicted), held(&s.oom))
		rejected = max(rejected, held(&s.rejected), held(&s.out), held(&s.buffered), held(&s.querying))
	}
	add(Disk, "of the time in which Redis waited for its disk", delayed, lastingShare, true)
	add(Memory, "of the time with evicted keys or refused commands", lacking, lastingShare, true)
	add(Clients, "of the time with rejected or closed connections", rejected, lastingShare, true)
	return list
}
