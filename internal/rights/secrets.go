package rights

import (
	"slices"
	"strings"
)

// Secrets are the fields, below spec, with the name of a Secret that the operator or a load pod
// reads for the user, by resource. [] follows a list.
var Secrets = map[string][]string{
	"redisfaults":              ofFault,
	"redisloadtests":           ofLoadTest,
	"redisexperiments":         ofExperiment,
	"redisexperimentschedules": slices.Concat(below("template.spec.", ofExperiment), OfSchedule),
}

// MostItems is how many items a list with references to Secrets can have: the API server's budget
// of an admission policy suffices for some 28 checks.
const MostItems = 4

// MostNames is about how many Secrets the policy of an experiment or a schedule asks one by one,
// for the same reason. Whoever names more must be allowed to get any.
const MostNames = 10

// OfSchedule are those of a schedule itself.
var OfSchedule = []string{"notify.urlSecretRef"}

var (
	ofFault      = slices.Concat(ofQueries, ofTarget)
	ofLoadTest   = slices.Concat(ofDatabase, ofTarget)
	ofExperiment = slices.Concat(below("template.spec.", ofLoadTest), below("faults[].spec.", ofFault))

	ofDatabase = []string{"workload.cacheAside.database.dsnSecretRef"}
	ofQueries  = []string{
		"stopIf.queries[].prometheus.authSecretRef", "stopIf.queries[].prometheus.tls.caSecretRef",
		"stopIf.queries[].prometheus.tls.certSecretRef",
	}
	ofTarget = []string{
		"target.auth.passwordSecretRef", "target.tls.caSecretRef", "target.tls.certSecretRef",
		"target.sentinel.auth.passwordSecretRef", "target.sentinel.tls.caSecretRef",
		"target.sentinel.tls.certSecretRef",
	}
)

func below(field string, paths []string) []string {
	var all []string
	for _, path := range paths {
		all = append(all, field+path)
	}
	return all
}

// SecretPaths are the fields of load tests and faults with the name of a Secret, and the lists with
// such fields: whoever sets one of them, a field within it, or one around it, may name any Secret.
// In lower case.
func SecretPaths() []string {
	var all []string
	for _, path := range slices.Concat(ofDatabase, ofTarget, ofQueries) {
		path, _, _ = strings.Cut(strings.ToLower(path), "[]")
		if !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	return all
}
