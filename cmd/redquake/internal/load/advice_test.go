package load

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// A doubt about a load from this machine names the flags that were typed.
func TestDoubtOfQueueingUsersNamesFlags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New()
		memredis.Start(t, network, inMemory, memredis.Options{Cost: time.Millisecond})
		out, _, _ := loadInMemory(t.Context(), t, network, "--users", "9", "--connections", "2", "--duration", "2s")
		r := clitest.Result(t, out)
		if len(r.Doubts) == 0 || r.Doubts[0].Reason != "UsersQueue" ||
			!strings.HasSuffix(r.Doubts[0].Message, "; set --connections to 9, or fewer users") {
			t.Errorf("the doubts are %+v", r.Doubts)
		}
	})
}
