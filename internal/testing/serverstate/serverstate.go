//go:build integration

package serverstate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// Of returns the settings and the role of a server, and whether a client can write.
func Of(address string) map[string]string {
	patience := time.Second
	// then a server without a pause may not answer either
	if operatortest.StalledSince(time.Now().Add(-10 * time.Second)) {
		patience = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := goredis.NewClient(&goredis.Options{
		Addr:                  address,
		MaxRetries:            -1,
		DialerRetries:         1,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
		ReadTimeout:           patience,
	})
	defer c.Close()
	shows := map[string]string{}
	settings, err := c.ConfigGet(ctx, "*").Result()
	for name, value := range settings {
		shows["setting "+name] = value
	}
	delete(shows, "setting dir") // differs for each process
	// In a cluster the first key whose slot this server has; a replica has none.
	for i := 0; err == nil && i < 64; i++ {
		err = c.Set(ctx, fmt.Sprintf("crash-test-%d", i), "written", 0).Err()
		if err == nil || !strings.HasPrefix(err.Error(), "MOVED ") {
			break
		}
		err = nil
	}
	shows["writes"] = fmt.Sprint(err)
	// A paused server blocks PUBLISH, and a replica accepts it.
	shows["publishes"] = fmt.Sprint(c.Publish(ctx, "crash-test", "heard").Err())
	if shows["setting cluster-enabled"] == "yes" {
		state, _ := c.ClusterInfo(ctx).Result()
		for line := range strings.Lines(state) {
			if name, value, _ := strings.Cut(strings.TrimSpace(line),
				":"); slices.Contains([]string{
				"cluster_state", "cluster_slots_ok", "cluster_known_nodes",
				"cluster_size",
			}, name) {
				shows["setting "+name] = value
			}
		}
	}
	info, _ := c.Info(ctx, "replication").Result()
	for line := range strings.Lines(info) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line),
			":"); slices.Contains([]string{
			"role", "connected_slaves", "master_link_status",
			"master_failover_state",
		}, name) {
			shows[name] = value
		}
	}
	return shows
}

// answerWithin is how long a server that counts what a fault did to it is asked for that: no answer
// would count as none.
const answerWithin = 20 * time.Second

// patient is a client that waits for an answer for answerWithin.
func patient(address string) *goredis.Client {
	return goredis.NewClient(&goredis.Options{
		Addr:            address,
		MaxRetries:      -1,
		DisableIdentity: true,
		ReadTimeout:     answerWithin,
	})
}

// Calls returns how often a server has executed a command, such as "client|kill", since its start.
func Calls(address, command string) int {
	c := patient(address)
	defer c.Close()
	info := ""
	_ = await.Try(context.Background(), answerWithin, func() (err error) {
		info, err = c.Info(context.Background(), "commandstats").Result()
		return err
	})
	n := 0
	for line := range strings.Lines(info) {
		if rest, is := strings.CutPrefix(line, "cmdstat_"+command+":calls="); is {
			n, _ = strconv.Atoi(rest[:strings.IndexByte(rest, ',')])
		}
	}
	return n
}

// Slow returns how many executions of a command took half a second or longer.
func Slow(address, command string) int {
	c := patient(address)
	defer c.Close()
	var entries []goredis.SlowLog
	_ = await.Try(context.Background(), answerWithin, func() (err error) {
		entries, err = c.SlowLogGet(context.Background(), -1).Result()
		return err
	})
	n := 0
	for _, e := range entries {
		if strings.EqualFold(e.Args[0], command) && e.Duration >= 500*time.Millisecond {
			n++
		}
	}
	return n
}
