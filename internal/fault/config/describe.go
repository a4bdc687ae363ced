package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

func (c config) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(record settingsRecord) contract.Description {
		return c.settings.describe(target, record)
	})
}

func (s settings) describe(
	target *v1alpha1.FaultTarget, record settingsRecord,
) contract.Description {
	return contract.Description{
		Action: fmt.Sprintf("%s at %s (now %s)", commandFor(s.values), target.Pod, inWords(record.Old)),
		Revert: commandFor(record.Old),
	}
}

// commandFor is the command that sets values: CONFIG SET appendfsync always hz 100.
func commandFor(values map[string]string) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		words = append(words, inWords(map[string]string{name: values[name]}))
	}
	return "CONFIG SET " + strings.Join(words, " ")
}

func (t ioThreads) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(record threadsRecord) contract.Description {
		switch {
		case record.Live != nil:
			return t.recordedLive(*record.Live).describe(target, *record.Live)
		case record.Template != nil:
			e := record.Template
			return contract.Description{
				Action: fmt.Sprintf(
					"set the %s in the template of StatefulSet %s to %q, and replace its pods one by one, replicas first (now io-threads %s)",
					e.optionSource, e.StatefulSet, e.After, record.Count),
				Revert: fmt.Sprintf("set %q again, and replace the pods", e.Before),
			}
		}
		return contract.Description{
			Action: fmt.Sprintf("nothing: %s has io-threads %s already", target.Pod, record.Count),
		}
	})
}
