// Command apilint checks the Go types of the API against Kubernetes' conventions, by analyzers of
// kube-api-linter.
// Rules that it lacks, and what only the CRDs show, are tested by internal/conventions.
//
//	apilint PACKAGES
package main

import (
	"log"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/multichecker"
	"sigs.k8s.io/kube-api-linter/pkg/analysis/conditions"
	naming "sigs.k8s.io/kube-api-linter/pkg/analysis/namingconventions"
	"sigs.k8s.io/kube-api-linter/pkg/analysis/registry"
	"sigs.k8s.io/kube-api-linter/pkg/config"
	_ "sigs.k8s.io/kube-api-linter/pkg/registration" // all of its analyzers
)

// enabled leaves out rules that this API decided against: durations are text with a unit, switches
// are booleans, and zero values are left out by omitempty without a pointer or a minimum length,
// unless zero has a meaning of its own.
var enabled = []string{
	"commentstart", "conditions", "defaultorrequired", "duplicatemarkers", "integers", "jsontags",
	"maxlength",
	"namingconventions", "nofloats", "nomaps", "nonullable", "noreferences", "notimestamp",
	"optionalorrequired",
	"ssatags", "statusoptional", "statussubresource", "uniquemarkers",
}

var settings = config.LintersConfig{
	"conditions": conditions.ConditionsConfig{
		UseProtobuf:      conditions.ConditionsUseProtobufForbid,
		UsePatchStrategy: conditions.ConditionsUsePatchStrategyForbid,
	},
	// Instead of nophase, which refuses the phases of a recovery, too: they are no state of the
	// object.
	"namingconventions": naming.Config{Conventions: []naming.Convention{{
		Name: "nophase", ViolationMatcher: "(?i)phase$", Operation: naming.OperationInform,
		Message: "use conditions for the state of an object",
	}}},
}

func main() {
	analyzers, err := newAnalyzers()
	if err != nil {
		log.Fatal(err)
	}
	multichecker.Main(analyzers...)
}

func newAnalyzers() ([]*analysis.Analyzer, error) {
	linters := config.Linters{Enable: enabled, Disable: []string{config.Wildcard}}
	return registry.DefaultRegistry().InitializeLinters(linters, settings)
}
