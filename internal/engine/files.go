package engine

import (
	"fmt"

	"github.com/redquake/redquake/internal/plan"
)

// spareFiles is how many files the process opens beside those that it has and the connections of
// the load: for the probes, the look at the topology, dials that replace others, and its output.
const spareFiles = 32

// checkFiles refuses a load with more connections than the process may open files. Go's runtime has
// raised the soft limit to the hard one.
func (r *Runner) checkFiles(connections int) error {
	if r.run.Portable {
		return nil
	}
	limit, open := openFiles()
	return tooManyFiles(limit, open, connections)
}

// tooManyFiles is the error of a process that may open so many files, 0 = no limit is known, and
// has so many open; nil if the connections fit.
func tooManyFiles(limit, open, connections int) error {
	if limit == 0 || open+connections+spareFiles <= limit {
		return nil
	}
	return &plan.Error{
		Reason: plan.ProcessLimit,
		Message: fmt.Sprintf(
			"spec.client.connections: the load needs %d connections, and this process may "+
				"have %d open files (ulimit -n) and needs %d for others: raise its limit to %d at least, or use "+
				"fewer connections", connections, limit, open+spareFiles, open+connections+spareFiles),
	}
}
