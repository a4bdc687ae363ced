package main

// exceptions are what is larger than the limits, with its size: it may shrink, and the exception with it, and never grows.
var exceptions = map[measured]int{
	// A document, a line of a protocol or the flags of a command: a field for each member that readers know.
	{"cmd/redquake/doctor.Facts", fields}:              26,
	{"cmd/redquake/internal/loadflags.Flags", fields}:  56,
	{"internal/analysis/compare.Comparison", fields}:   31,
	{"internal/analysis/impact.Impact", fields}:        27,
	{"internal/collect.Config", fields}:                21,
	{"internal/collect.PodStatus", fields}:             27,
	{"internal/record.Interval", fields}:               26,
	{"internal/record.Server", fields}:                 50,
	{"internal/report.Document", fields}:               22,
	{"internal/result.Fault", fields}:                  37,
	{"internal/result.Load", fields}:                   38,
	{"internal/result/comparisons.Comparison", fields}: 28,
	{"test/soak.Report", fields}:                       24,
}
