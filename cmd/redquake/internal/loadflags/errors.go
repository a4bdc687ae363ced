package loadflags

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/redquake/redquake/internal/manifest"
	"github.com/redquake/redquake/internal/plan"
)

// flagsOfFields are the flags that set the fields of a RedisLoadTest.
var flagsOfFields = map[string]string{
	"spec.target.addresses":                  "address",
	"spec.target.topology":                   "topology",
	"spec.target.database":                   "database",
	"spec.target.sentinel.addresses":         "sentinel",
	"spec.target.sentinel.masterName":        "master-name",
	"spec.load.users":                        "users",
	"spec.load.rate":                         "rate",
	"spec.load.arrivals":                     "arrivals",
	"spec.load.thinkTime":                    "think-time",
	"spec.load.duration":                     "duration",
	"spec.load.requests":                     "requests",
	"spec.load.rampUp":                       "ramp-up",
	"spec.load.warmUp":                       "warm-up",
	"spec.load.search":                       "search",
	"spec.load.search.from":                  "search",
	"spec.load.search.to":                    "search",
	"spec.load.search.trial":                 "search-trial",
	"spec.load.search.precision":             "search-precision",
	"spec.objectives.minThroughput":          "min-throughput",
	"spec.objectives.maxLatencyP50":          "max-latency-p50",
	"spec.objectives.maxLatencyP99":          "max-latency-p99",
	"spec.objectives.maxLatencyP999":         "max-latency-p999",
	"spec.objectives.maxErrorRate":           "max-error-rate",
	"spec.objectives.maxLostWrites":          "max-lost-writes",
	"spec.workload.commands":                 "command",
	"spec.workload.benchmark":                "tests",
	"spec.workload.keyspace.keys":            "keys",
	"spec.workload.keyspace.distribution":    "distribution",
	"spec.workload.keyspace.ttl":             "ttl",
	"spec.workload.keyspace.cleanup":         "cleanup",
	"spec.workload.keyspace.zipf":            "zipf-exponent",
	"spec.workload.keyspace.gaussian.centre": "gaussian-centre",
	"spec.workload.keyspace.gaussian":        "gaussian-deviation",
	"spec.workload.seed":                     "seed",
	"spec.workload.values.bytes":             "value-bytes",
	"spec.client.connections":                "connections",
	"spec.client.pipeline":                   "pipeline",
	"spec.client.requestTimeout":             "timeout",
	"spec.client.dialTimeout":                "dial-timeout",
	"spec.client.readFrom":                   "read-from",
	"spec.client.mode":                       "mode",
	"spec.client.driver":                     "driver",
	"spec.client.connectionMaxAge":           "connection-max-age",
	"spec.client.retries":                    "retries",
	"spec.client.addedLatency":               "added-latency",
	"spec.client.options":                    "driver-option",
	"spec.probe.rate":                        "probe-rate",
	"spec.probe.operation":                   "probe-operation",
	"spec.observe.interval":                  "interval",
	"spec.verify.share":                      "verify-share",
}

// wanted are the values of flags that are checked against a pattern, which says little to a reader.
var wanted = map[string]string{
	"address":            "host:port, as redis-0:6379",
	"sentinel":           "host:port, as sentinel-0:26379",
	"min-throughput":     "a number above 0, as 1500",
	"max-error-rate":     "a share in percent, as 0.1%",
	"verify-share":       "a share in percent, as 5%",
	"zipf-exponent":      "a number between 0.01 and 10, as 0.99",
	"gaussian-centre":    "a share in percent, as 80%",
	"gaussian-deviation": "a share in percent, as 5%",
	"search-precision":   "a share in percent between 1% and 50%, as 5%",
}

var index = regexp.MustCompile(`\[[0-9]+\]`)

// flagOf returns the flag that was given for a field or one around it; empty if it is the file's.
func (f *Flags) flagOf(path string) string {
	for path = index.ReplaceAllString(path,
		""); path != ""; path = path[:max(0, strings.LastIndexByte(path, '.'))] {
		if flag, ok := flagsOfFields[path]; ok && f.changed(flag) {
			return flag
		}
	}
	return ""
}

// Named returns an error about the spec with the names of the flags that were given for its fields;
// the others begin with the file, if there is one.
func (f *Flags) Named(err error) error {
	var invalid *manifest.InvalidError
	if !errors.As(err, &invalid) {
		message := err.Error()
		if of, ok := errors.AsType[*plan.Error](err); ok {
			message = of.Message
		}
		path, rest, _ := strings.Cut(message, ": ")
		if flag := f.flagOf(path); flag != "" {
			return fmt.Errorf("--%s: %s", flag, rest)
		}
		return f.inFile(errors.New(message))
	}
	flags := true
	text := invalid.Format(func(e *field.Error) string {
		flag := f.flagOf(e.Field)
		if flag == "" {
			flags = false
			return manifest.FormatField(e)
		}
		return f.ofFlag(flag, e)
	})
	if flags {
		return errors.New(text)
	}
	return f.inFile(errors.New(text))
}

// ofFlag returns the text of an error about the value of a flag.
func (f *Flags) ofFlag(flag string, e *field.Error) string {
	detail := strings.TrimPrefix(e.Detail, e.Field+" in body ")
	want, ok := wanted[flag]
	if ok && strings.HasPrefix(detail, "should match ") {
		detail = "must be " + want
	} else if strings.HasPrefix(detail, "should match ") {
		detail = "must be a duration, as 1m30s; no part of it below 1ms"
	}
	if e.Type == field.ErrorTypeNotSupported {
		return fmt.Sprintf("--%s: %q: %s", flag, e.BadValue, detail)
	}
	return fmt.Sprintf("--%s: %v: %s", flag, e.BadValue, detail)
}
