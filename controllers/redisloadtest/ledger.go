package redisloadtest

import (
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect"
)

// verifyingMessage returns the message of the first load pod that is reading its ledger back, "" if
// none is.
func verifyingMessage(pods []collect.PodStatus) string {
	for _, pod := range pods {
		if pod.State == agent.Verifying && !pod.Gone && pod.Message != "" {
			return pod.Message
		}
	}
	return ""
}
