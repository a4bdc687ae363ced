package load

import (
	"fmt"
	"strings"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/run"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
)

// thisMachine is what stands for the name of a load test in the report of a load that had none.
const thisMachine = "from this machine"

// reportOf makes the report of a load from this machine.
func reportOf(load *result.Load, series *merged.Series) *report.Document {
	return run.LoadTest(subject.Input{
		Name:   thisMachine,
		Load:   load,
		Series: series,
	})
}

var loadHelp = `Load a Redis from this machine, without a cluster, and write what was measured.

What to send comes from a RedisLoadTest (-f), the same object that is applied to a cluster, or from flags. A flag overrides
the file. Without both, 100,000 keys are set, and then 50 users send one SET to nine GETs to 127.0.0.1:6379 for 30 seconds.
Workloads other than commands and --tests (rankings, rate limiters, an HTTP API, a database behind a cache) need a file.

The flags of redis-benchmark -h HOST, -p, -c, -n, -d, -r, -P, -q and -t are taken as there; -h without a host is this help. Where Redis
is may be written as the argument ADDRESS, as redis-cli takes it: a host, host:port, an URI, or the path of a unix socket.

Keys that a load writes stay, and begin with rq:; --ttl and --cleanup remove them. Beside the load, a probe sends 100 requests per
second over connections of its own to measure outages: SET of a key that expires, or GET of it if the load only reads, which then
writes nothing.

Quotes and escapes of --command are those of redis-cli: in double quotes \n \r \t \b \a \xHH \" \\, in single quotes \', outside of quotes
none.

--users makes a closed loop: a user sends its next request after the reply to the last one, and latency is service time, counted from
the send. --rate makes an open loop: the times of the requests are fixed in advance, and latency counts from these, so that it
includes the time spent waiting for slow replies. --search finds the highest rate of an open loop that meets the objectives of
latency and errors: it doubles the rate until they are missed, then bisects.

The placeholders of a command, each replaced anew for every request:
` + placeholders() + `
Other words in braces, and the placeholders of other tools, are refused; \{ is a brace that begins none. Commands that change their
connection (MULTI, SELECT, SUBSCRIBE, MONITOR, ...) are refused, too: requests of all kinds share the connections.

The verdict is Pass if all objectives are met and nothing is in doubt, Fail if an objective is missed or fewer than 99 % of the requests
succeeded (--min-success 0 to measure an outage), and Inconclusive if the figures cannot be relied on, for instance because this
machine limited the load, with the reason.

Replication, sentinels and a Redis Cluster are detected and followed: after a failover the load goes to the new primary.
--verify-writes reports which acknowledged writes were lost.

The password is read from --password-file or $REDISCLI_AUTH, that of a database from --dsn-file, never from the command line.
Ctrl-C, SIGTERM and a terminal that is closed (SIGHUP, unless nohup ignores it) end the load; its result until then is still written.
Progress goes to stderr, the result to stdout. If nobody reads one of them any more, the load goes on, and everything else is written.

Exit codes:
  0    the verdict is Pass
  1    the verdict is Fail
  2    the verdict is Inconclusive
  3    an error: a flag or a file is invalid, Redis cannot be reached, a command was rejected, the result could not be written;
       with -o json, the error is on stdout, too
  130  interrupted; the result until then was written`

// placeholders lists those of a command's words, a line each.
func placeholders() string {
	var list strings.Builder
	for _, p := range plan.Placeholders {
		fmt.Fprintf(&list, "  %-8s %s\n", p.Text, p.Meaning)
	}
	return strings.TrimSuffix(list.String(), "\n")
}

const loadExamples = `  # 100 users for a minute against a port-forwarded Redis
  {name} load --address 127.0.0.1:6379 --users 100 --duration 1m

  # 5000 requests/s, one write to four reads, values of 1 KiB, all keys set beforehand, without the first 10 seconds
  {name} load --rate 5000 --command 'SET {key} {value}' --command '4:GET {key}' --value-bytes 1024 --prefill --warm-up 10s

  # a Redis Cluster: any of its nodes will do; reads go to the replicas
  {name} load --address node-0:6379 --address node-1:6379 --topology Cluster --rate 20000 --read-from Replica

  # through sentinels, during a failover: count the acknowledged writes that are lost
  {name} load --sentinel sentinel-0:26379 --sentinel sentinel-1:26379 --master-name mymaster --rate 2000 \
    --command 'SET {key} {value}' --verify-writes --verify-share 10%

  # a million INCR over TLS, as an ACL user, for a script
  {name} load --address redis.example:6380 --tls --ca ca.crt --username app --password-file password \
    --command 'INCR {key}' --requests 1000000 -o json

  # a gate for a pipeline: exit code 0 only if 1000 requests/s were answered, 99 % of them within 5 ms, and at most 0.1 % failed
  {name} load --rate 1000 --timeout 200ms --min-throughput 990 --max-latency-p99 5ms --max-error-rate 0.1%

  # keep the record, which redquake results shows over time, and write a page with curves
  {name} load --rate 1000 --duration 1m --record run.record --report report.html

  # the load of a RedisLoadTest, shorter, at another address
  {name} load -f config/samples/loadtest.yaml --address 127.0.0.1:6379 --duration 10s

  # the highest rate with 99 % of the replies within 2 ms and at most 0.1 % errors
  {name} load --search 1000:200000 --max-latency-p99 2ms --max-error-rate 0.1% --connections 200

  # an HTTP API that uses Redis: the file defines the requests
  {name} load -f config/samples/loadtest-http.yaml --address 127.0.0.1:6379 --rate 100 --duration 1m`
