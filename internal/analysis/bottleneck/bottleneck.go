// Package bottleneck finds the component that limited a run from the samples of its steady part,
// and reads the resource usage of the load generator's own process.
package bottleneck

import (
	"cmp"
	"fmt"
	"strings"
)

// Component is what limited a run.
type Component string

// The components. Refusals of the load's requests come first, and that the load generator did not
// run after the limits of Redis: see Find.
const (
	// the load pods: the figures are then limited by them, not by Redis
	LoadGenerator Component = "LoadGenerator"
	Network       Component = "Network" // the network between load and Redis
	// the CPU of observed pods that the load passes through: an application, a database
	Application     Component = "Application"
	CPULimit        Component = "CPULimit"        // the CPU limit of Redis' container
	RedisMainThread Component = "RedisMainThread" // the one thread that runs commands
	Disk            Component = "Disk"            // fsync of the append-only file
	Memory          Component = "Memory"          // maxmemory: evictions, refused writes
	Clients         Component = "Clients"         // maxclients, blocked clients
	Backend         Component = "Backend"         // the backend of the workload: a database, an API
	None            Component = "None"            // nothing reached its limit
)

// Finding is the component and the evidence, one sentence with figures.
type Finding struct {
	Component Component
	Evidence  string
	Pods      string // Application: the name of the observed pods
	// LoadGenerator: a load pod often did not run; which figures that concerns, summary.Stalls tells
	Stalled bool
}

// Find returns the bottleneck of the steady part of a run: the first match. That a load generator
// was at its limit, or did not run, is said beside any other.
// It is a pure function of its input.
func Find(in Input) Finding {
	e := gather(in)
	for _, c := range []struct {
		component Component
		matches   func(*evidence) string
	}{
		{Memory, (*evidence).outOfMemory},
		{Memory, (*evidence).refusedMemory},
		{Disk, (*evidence).refusedDisk},
		{Clients, (*evidence).cutOff},
		{Disk, (*evidence).fullDisk},
		{LoadGenerator, (*evidence).loadGenerator},
		{CPULimit, (*evidence).starvedServer},
		{LoadGenerator, (*evidence).stalledPod},
		{Network, (*evidence).network},
		{Application, (*evidence).application},
		{CPULimit, (*evidence).cpuLimit},
		{RedisMainThread, (*evidence).mainThread},
		{Disk, (*evidence).disk},
		{Memory, (*evidence).memory},
		{Clients, (*evidence).clients},
		{Backend, (*evidence).backendWait},
	} {
		sentence := c.matches(e)
		if sentence == "" {
			continue
		}
		found := Finding{Component: c.component, Evidence: sentence}
		switch c.component {
		case LoadGenerator:
			found.Stalled = e.loadGenerator() == ""
			found.Evidence = also(sentence, e.brokenConnections())
			return found
		case Clients:
			found.Evidence = also(sentence, e.generatorLimit())
			return found
		case Application:
			found.Pods = e.exhausted().name
		}
		found.Evidence = also(sentence, also(e.brokenConnections(), e.generatorLimit()))
		return found
	}
	return Finding{
		Component: None,
		Evidence:  also(e.noLimit(), also(e.brokenConnections(), e.didNotRun())),
	}
}

// generatorLimit returns the evidence that a load pod was at its limit, or did not run.
func (e *evidence) generatorLimit() string {
	return cmp.Or(e.loadGenerator(), e.didNotRun())
}

// loadGenerator returns the evidence that a load pod was at its limit, for the one with the highest
// usage.
func (e *evidence) loadGenerator() string {
	return cmp.Or(e.saturatedPod(), e.throttledPod(), e.lateSends())
}

func (e *evidence) saturatedPod() string {
	worst, sentence := 0.0, ""
	for _, g := range e.generators {
		share, of := g.share()
		used := g.busiest(share)
		if s := share(used); s >= saturated && s > worst {
			worst = s
			sentence = fmt.Sprintf("load pod %d used %s of CPU, %s", g.pod, cores(used.cores()),
				g.compared(used, share, " of "+of))
		}
	}
	return sentence
}

func (e *evidence) throttledPod() string {
	worst, sentence := 0.0, ""
	share := func(u usage) float64 { return u.throttled / u.seconds }
	for _, g := range e.generators {
		used := g.busiest(share)
		if s := share(used); s >= throttledShare && s > worst {
			worst = s
			sentence = fmt.Sprintf("load pod %d was throttled by its CPU limit of %s for %s", g.pod,
				cores(g.limit), g.compared(used, share, " of the time"))
		}
	}
	return sentence
}

// elsewhereAtLimit reports whether the application, or Redis' CPU or disk, was at its limit: of its
// own use, whatever delayed the requests on their way.
func (e *evidence) elsewhereAtLimit() bool {
	return e.application() != "" || e.cpuLimit() != "" || e.mainThread() != "" || e.disk() != "" ||
		e.starvedServer() != ""
}

// lateSends returns the evidence that requests waited for the load generator. The median is used
// because a saturated generator is late in most requests, and the stalls of a shared machine affect
// few.
func (e *evidence) lateSends() string {
	lag := e.response.Quantile(0.5) - e.service.Quantile(0.5)
	p99 := e.response.Quantile(0.99)
	if e.service.Count() > 0 && lag >= lagLeast && float64(lag) > lagShare*float64(p99) &&
		e.inFlight < occupied {
		return fmt.Sprintf(
			"requests were sent late: half of them by %s and more after their arrival, %s of the p99 of %s, while %s of the connections were in use",
			duration(lag), percent(float64(lag)/float64(p99)), duration(p99), percent(e.inFlight))
	}
	return ""
}

// network compares the round trip with the median latency. Before the load, too, a PING may wait
// for a Redis that others saturate, and is then no evidence about the network. A short round trip
// is evidence only if Redis has no other problem either: with a lightly loaded Redis nearby, the
// latency of every request is mostly the round trip. Of a workload with a backend, a part of the
// requests goes there: its limit comes first.
func (e *evidence) network() string {
	p50 := e.median()
	if !e.isRoundTrip() || float64(e.roundTrip) < roundTripShare*float64(p50) || e.elsewhereAtLimit() {
		return ""
	}
	if e.roundTrip < nearby && (e.memory() != "" || e.clients() != "") {
		return ""
	}
	text := fmt.Sprintf("the round trip of a PING alone takes %s, %s of the median latency of %s",
		duration(e.roundTrip), percent(float64(e.roundTrip)/float64(p50)), duration(p50))
	if s, used := e.busiest(usage.mainThread); s != nil {
		text += "; Redis' main thread was " + s.compared(used, usage.mainThread, " busy")
	}
	return also(text, e.notObserved())
}

// isRoundTrip reports whether the PING can be the network's part of a request: requests go to
// Redis, and it did not take longer than half of them. No request is faster than the network, so
// that a longer PING waited for something else. Where nothing is known of Redis, only a PING before
// the load is certain not to have waited for it.
func (e *evidence) isRoundTrip() bool {
	return e.in.Redis == Direct && e.roundTrip > 0 && e.roundTrip <= e.median() &&
		(len(e.servers) > 0 || e.idleRoundTrip > 0)
}

func (e *evidence) cpuLimit() string {
	limit := e.in.ServerCPULimit
	share := func(u usage) float64 { return u.cores() / limit }
	s, used := e.busiest(usage.cores)
	if s == nil || limit <= 0 || share(used) < saturated {
		return ""
	}
	return fmt.Sprintf("%s used %s of CPU, %s", e.name(s), cores(used.cores()),
		s.compared(used, share, " of its container's limit of "+cores(limit)))
}

func (e *evidence) mainThread() string {
	s, used := e.busiest(usage.mainThread)
	if s == nil || used.mainThread() < saturated {
		return ""
	}
	what := "the main thread"
	if used.main == 0 {
		what = "the process (it does not report the main thread's share)"
	}
	return fmt.Sprintf("%s of %s used %s, %s commands/s%s%s", what, e.name(s),
		s.compared(used, usage.mainThread, " of one core"),
		number(float64(used.commands)/used.seconds), s.ioThreads(), s.slow.text())
}

func (e *evidence) backendWait() string {
	if e.in.Backend == "" || e.median() == 0 {
		return ""
	}
	of := ""
	share, known := e.backendTime()
	if known && share < backendShare {
		return ""
	} else if known {
		of = ", in which operations spend " + percent(share) + " of their time"
	}
	text := fmt.Sprintf("the workload waits for %s%s: the median latency is %s, and %s", e.in.Backend,
		of, duration(e.median()), e.withinLimits())
	return also(text+e.observedUse(), e.notObserved())
}

// withinLimits says what is known to have reached no limit.
func (e *evidence) withinLimits() string {
	switch load, redis := len(e.generators) > 0, len(e.servers) > 0; {
	case load && redis && e.notObserved() != "":
		return "neither the load nor an observed server is at a limit"
	case load && redis:
		return "neither the load nor Redis is at a limit"
	case load:
		return "the load is not at a limit"
	case redis:
		return "Redis is not at a limit"
	}
	return "there are no readings of the load generator"
}

// also adds a further statement, if there are both.
func also(text, more string) string {
	if text == "" || more == "" {
		return text + more
	}
	return text + "; " + more
}

// backendTime returns the share of the backend in the time of the operations in it and in Redis; it
// is not known without a Redis.
func (e *evidence) backendTime() (share float64, known bool) {
	sum := e.inBackend + e.inRedis
	return float64(e.inBackend) / float64(max(1, sum)), e.inRedis > 0
}

// noLimit returns the usage of load generator, network and Redis for a run without a bottleneck.
func (e *evidence) noLimit() string {
	var parts []string
	most, text := 0.0, ""
	for _, g := range e.generators {
		share, _ := g.share()
		if used := g.busiest(share); share(used) > most {
			most, text = share(used), g.compared(used, share, " of its CPU")
		}
	}
	if most > 0 {
		parts = append(parts, "the busiest load pod used "+text)
	}
	p50 := e.median()
	if e.in.Redis == Direct && p50 > 0 && e.roundTrip > p50 {
		parts = append(parts,
			fmt.Sprintf(
				"a PING takes at least %s, longer than the median latency of %s (it waited for the CPU of "+
					"its node)", duration(e.roundTrip), duration(p50)))
	} else if e.isRoundTrip() {
		text := fmt.Sprintf("a PING takes at least %s, %s of the median latency of %s",
			duration(e.roundTrip), percent(float64(e.roundTrip)/float64(p50)), duration(p50))
		loaded := e.loadedRoundTrip + e.in.AddedLatency
		if float64(loaded) >= roundTripShare*float64(p50) {
			text += fmt.Sprintf(
				" (under load at least %s: it waits for Redis, for a CPU, or for a full network)",
				duration(loaded))
		}
		parts = append(parts, text)
	}
	if s, used := e.busiest(usage.mainThread); s != nil {
		parts = append(parts, "Redis' main thread was "+s.compared(used, usage.mainThread, " busy"))
	}
	if share, known := e.backendTime(); known {
		parts = append(parts, "operations spent "+percent(share)+" of their time in "+e.in.Backend)
	}
	missing, scope := e.notObserved(), ""
	switch {
	case len(parts) == 0:
		return also("there are no readings of the load generator in the steady part", missing)
	case missing != "":
		scope = " that was observed"
	case len(e.observed) > 0 && e.in.Backend == "":
		scope = " on the way of the requests"
	}
	return also("nothing"+scope+" was at its limit: "+strings.Join(parts, ", ")+e.observedUse(),
		missing)
}
