package target

import (
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis"
)

// A command for a person fails loudly, and logs in as the spec says, whether the Secrets were read or not. It holds no
// password.
func TestCLI(t *testing.T) {
	hit := &v1alpha1.FaultTarget{Pod: "redis-0", Container: "redis", Address: "10.0.0.1:6380"}
	auth := &v1alpha1.RedisAuth{Username: "ops user"}
	for name, tc := range map[string]struct {
		redis   Redis
		cli, at string
	}{
		"without a login": {
			Redis{Namespace: "shop"},
			"kubectl -n shop exec redis-0 -c redis -- redis-cli -e -p 6380 CONFIG SET save ''",
			"redis-cli -e -h 10.0.0.1 -p 6380 PING",
		},
		"by the spec": {
			Redis{Namespace: "shop", Spec: &v1alpha1.RedisTarget{Auth: auth, TLS: &v1alpha1.RedisTLS{}}},
			"kubectl -n shop exec -it redis-0 -c redis -- redis-cli -e -p 6380 --tls --insecure --user 'ops user' --askpass CONFIG SET save ''",
			"redis-cli -e -h 10.0.0.1 -p 6380 --tls --insecure --user 'ops user' --askpass PING",
		},
		"by the Secret": {
			Redis{
				Namespace: "shop",
				Spec:      &v1alpha1.RedisTarget{Auth: &v1alpha1.RedisAuth{}},
				Login:     redis.Login{Password: "s3cret"},
			},
			"kubectl -n shop exec -it redis-0 -c redis -- redis-cli -e -p 6380 --askpass CONFIG SET save ''",
			"redis-cli -e -h 10.0.0.1 -p 6380 --askpass PING",
		},
	} {
		if got := tc.redis.CLI(hit, "CONFIG", "SET", "save", ""); got != tc.cli {
			t.Errorf("%s: %s\nwant %s", name, got, tc.cli)
		}
		if got := tc.redis.CLIAt(hit.Address, "PING"); got != tc.at {
			t.Errorf("%s: %s\nwant %s", name, got, tc.at)
		}
	}
}
