package plan

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// maxIntervals bounds a record.
const maxIntervals = 10_000_000

// Validate returns an *Error with reason PlanInvalid whose message begins with the field of the
// RedisLoadTest, or nil. The schema of the RedisLoadTest is not checked once more: what remains are
// the addresses that were found, text that only the engine reads, members that do not go together,
// and values that an agent of another version than the operator's does not support.
func (p *Plan) Validate() error {
	for _, check := range []func() string{
		p.checkComplete, p.checkKnown, p.checkTarget, p.checkShape,
		p.checkTogether, p.checkDriver, p.checkWorkload,
	} {
		if problem := check(); problem != "" {
			return &Error{Reason: PlanInvalid, Message: "spec." + problem}
		}
	}
	return nil
}

// checkComplete rejects a plan without required fields, such as one from an object without
// defaults.
func (p *Plan) checkComplete() string {
	for _, member := range []struct {
		field   string
		missing bool
	}{
		{"pods.count", p.Pods < 1},
		{"observe.interval", p.Interval <= 0},
		{"client.connections", p.Client.Connections < 1},
		{"client.pipeline", p.Client.Pipeline < 1},
		{"client.dialTimeout", p.Client.DialTimeout <= 0},
		{"client.requestTimeout", p.Client.RequestTimeout <= 0},
		{"load", p.Shape.Users == 0 && p.Shape.Rate == 0 && len(p.Shape.Stages) == 0},
		{"load.duration", p.Shape.Length() == 0 && p.Shape.Requests == 0},
		{"workload.keyspace.keys", p.Workload.Keyspace.Keys < 1},
		{"probe", p.Probe.Rate > 0 && (len(p.Probe.Words) == 0 || p.Probe.Words[0] == "")},
	} {
		if member.missing {
			return member.field + ": is missing"
		}
	}
	return ""
}

// checkKnown rejects values that this program does not support. "" is each type's default.
func (p *Plan) checkKnown() string {
	c := &p.Client
	return firstOf(
		unknown("target.topology", p.Target.Topology, "", TopologyAuto, TopologyStandalone,
			TopologyReplication, TopologySentinel, TopologyCluster),
		unknown("client.protocol", "RESP"+strconv.Itoa(c.Protocol), "RESP2", "RESP3"),
		unknown("client.readFrom", c.ReadFrom, "", ReadPrimary, ReadReplica, ReadAny),
		unknown("client.mode", c.Mode, "", Dedicated, Multiplexed),
		unknown("client.driver", c.Driver, append(Drivers(), "")...),
		unknown("load.arrivals", p.Shape.Arrivals, "", Even, Poisson),
		unknown("workload.keyspace.distribution", p.Workload.Keyspace.Distribution, Uniform, Zipf,
			Gaussian, Sequential),
	)
}

// checkTarget rejects a target without an address to dial, unless nothing is sent to it.
func (p *Plan) checkTarget() string {
	t := &p.Target
	if !t.IsSet() && !p.Workload.NeedsRedis() && p.Probe.Rate == 0 && p.Info == 0 {
		return ""
	}
	if t.Sentinel == nil {
		if len(t.Addresses) == 0 {
			return "target: no address of a Redis was found: set service, addresses or podSelector, or sentinel"
		}
		if slices.ContainsFunc(t.Addresses, IsSocket) {
			return t.checkSocket()
		}
		return checkAddresses("target.addresses", t.Addresses)
	}
	if len(t.Sentinel.Addresses) == 0 {
		return "target.sentinel: no address of a sentinel was found: set service or addresses"
	}
	return firstOf(checkAddresses("target.addresses", t.Addresses),
		checkAddresses("target.sentinel.addresses", t.Sentinel.Addresses))
}

// checkSocket rejects what a unix socket, the way to one server of this machine, does not allow.
func (t *Target) checkSocket() string {
	switch {
	case len(t.Addresses) > 1:
		return "target.addresses: a unix socket is that of one server: it must be the only address"
	case t.TLS != nil:
		return "target.tls: there is no TLS on a unix socket: set the host and port instead"
	case t.Topology != "" && t.Topology != TopologyAuto && t.Topology != TopologyStandalone:
		return "target.topology: a unix socket is that of one server, topology Standalone"
	}
	return ""
}

func checkAddresses(field string, addresses []string) string {
	for i, address := range addresses {
		host, port, err := net.SplitHostPort(address)
		if err != nil || host == "" {
			return fmt.Sprintf("%s[%d]: %q must be host:port", field, i, address)
		}
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return fmt.Sprintf("%s[%d]: the port of %q must be between 1 and 65535", field, i, address)
		}
	}
	return ""
}

// checkShape rejects problems that depend on the whole shape of the load.
func (p *Plan) checkShape() string {
	s := &p.Shape
	if n := s.Length() / p.Interval; n > maxIntervals {
		return fmt.Sprintf("observe.interval: %s over %s makes %d intervals, at most %d can be recorded",
			p.Interval, s.Length(), n, maxIntervals)
	}
	if len(s.Stages) > 0 && !slices.ContainsFunc(s.Stages, func(st Stage) bool {
		return st.Users > 0 ||
			st.Rate > 0
	}) {
		return "load.stages: no stage has any users or rate: there is no load"
	}
	if s.Search != nil {
		_, end := s.Search.Window(s.Search.From, s.MeasuredFrom())
		if end > s.Length() {
			return fmt.Sprintf(
				"load.duration: the first trial alone takes %s: set a longer duration than %s, or a higher "+
					"search.from", end-s.MeasuredFrom(), s.Duration)
		}
	}
	return ""
}

// checkTogether rejects fields of different parts of the spec that exclude each other.
func (p *Plan) checkTogether() string {
	remote, library := p.Workload.IsRemote(), p.Client.Driver.IsLibrary()
	turns := p.Turns()
	switch {
	case turns != nil && p.Shape.Search != nil:
		return "workload.benchmark.order: a search needs all tests in each trial: set Mixed, or one test"
	case turns != nil && turns.Each <= 0 && p.Shape.Requests == 0:
		return "workload.benchmark.order: Sequential needs a duration or a number of requests to divide"
	case remote && library:
		return fmt.Sprintf("client.driver: %s is for workloads of Redis commands: set Native", p.Client.Driver)
	case p.Verify != nil && remote:
		return "verify: acknowledged writes are verified of workloads of Redis commands only"
	}
	return ""
}

// maxLibraryValue leaves room for the rest of a message to an adapter, see clients/PROTOCOL.md.
const maxLibraryValue = 15 << 20

// checkDriver rejects what the libraries of applications do not do.
func (p *Plan) checkDriver() string {
	c := &p.Client
	switch driver := c.Driver; {
	case !driver.IsLibrary() && (len(c.Options) > 0 || c.Adapter != nil):
		return "client.options: driver Native has none: set the driver whose library they belong to"
	case !driver.IsLibrary():
		return ""
	case driver.Language() != Go && c.Adapter == nil:
		return fmt.Sprintf("client.driver: %s needs its adapter, which is a program of its own", driver)
	case c.Options.size() > maxOptions:
		return fmt.Sprintf("client.options: %d bytes of JSON; at most %d are allowed", c.Options.size(), maxOptions)
	case p.Workload.Values.MaxBytes > maxLibraryValue:
		return fmt.Sprintf("workload.values: driver %s sends values of at most %d bytes", driver, maxLibraryValue)
	case slices.ContainsFunc(p.Target.Addresses, IsSocket):
		return fmt.Sprintf("target.addresses: driver %s connects by TCP: set the host and port", driver)
	case p.Target.Sentinel != nil && (p.Target.Sentinel.TLS == nil) != (p.Target.TLS == nil):
		return fmt.Sprintf("target.sentinel.tls: driver %s uses TLS with both sentinels and servers, or with none", driver)
	case c.ReadFrom != "" && c.ReadFrom != ReadPrimary:
		return fmt.Sprintf("client.readFrom: driver %s decides by itself, as its options say: set client.options", driver)
	}
	return ""
}

func (p *Plan) checkWorkload() string {
	if problem := p.Workload.Problem(); problem != "" {
		return "workload." + problem
	}
	return p.checkLock()
}

// unknown returns a problem if value is not one of known.
func unknown[T ~string](field string, value T, known ...T) string {
	if slices.Contains(known, value) {
		return ""
	}
	var names []string
	for _, name := range known {
		if name != "" {
			names = append(names, string(name))
		}
	}
	return fmt.Sprintf("%s: %q is none of %s", field, value, strings.Join(names, ", "))
}

// firstOf returns the first problem.
func firstOf(problems ...string) string {
	for _, problem := range problems {
		if problem != "" {
			return problem
		}
	}
	return ""
}
