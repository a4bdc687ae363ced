package kube

import "github.com/redquake/redquake/api/v1alpha1"

// LastRun is the name of the last run of a schedule that has ended; "" = none has.
func LastRun(s *v1alpha1.RedisExperimentSchedule) string {
	if history := s.Status.History; len(history) > 0 {
		return history[len(history)-1].Name
	}
	return ""
}

// SuchAs names a run as an example, if there is one.
func SuchAs(run string) string {
	if run == "" {
		return ""
	}
	return ", such as redisexperiment/" + run
}
