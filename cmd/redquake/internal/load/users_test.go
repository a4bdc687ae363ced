package load

import (
	"testing"
	"testing/synctest"

	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// A number of users alone, as in the example of `redquake compare`, makes a load whose figures can be relied on.
func TestUsersAlone(t *testing.T) {
	for _, users := range []string{"50", "100", "200"} {
		t.Run(users, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := memnet.New()
				memredis.Start(t, network, inMemory, memredis.Options{})
				out, _, err := loadInMemory(t.Context(), t, network, "--users", users, "--added-latency", "100ms", "--duration",
					"3s")
				if r := clitest.Result(t, out); err != nil || r.Verdict != "Pass" {
					t.Errorf("%v: %s: %s, %+v", err, r.Verdict, r.Why, r.Doubts)
				}
			})
		})
	}
}
