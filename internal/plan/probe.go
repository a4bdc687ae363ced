package plan

// probeLeast is the least rate of a pod that probes, per second: a pod logs the gaps that are
// longer than 2 of its intervals, 80 ms, and one of the run is an overlap of those of all pods that
// probe.
const probeLeast = 25

// ProbePods is how many pods probe, each at an equal part of the probe's rate: the first ones, as
// many as leave each at least 25 requests a second.
// The servers see the same rate whatever the number of pods.
func (p *Plan) ProbePods() int {
	if p.Probe.Rate == 0 {
		return 0
	}
	return min(p.Pods, max(1, int(p.Probe.Rate/probeLeast)))
}
