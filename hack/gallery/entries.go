package main

// entry is one of the gallery: a folder with a kustomization, what it makes, and the one figure
// that answers its question.
type entry struct {
	name   string
	object string // the load test, experiment or schedule that is reported, KIND/NAME
	figure string // its name for people
	value  func(*report) (string, error)
	// planted is of a schedule, which never ends: a file that is applied after two of its runs. The
	// value is what it then says of a regression.
	planted string
	// refused is a file that redquake plan must refuse when the entry has run; "" = there is none.
	refused    string
	privileged bool // its pods need more than Pod Security "restricted" admits
	zones      bool // it needs nodes in zones: where there are none, each node is one
	operator   bool // it needs the operator of config/gallery/bases/redis-operator
}

// page is the entry's page in docs/gallery: two of them share one with another entry.
func (e entry) page() string {
	switch e.name {
	case "connection-age":
		return "seven-failovers"
	case "io-threads-bitnami":
		return "io-threads"
	case "drain-one-by-one":
		return "drain-both-copies"
	}
	return e.name
}

// entries are in the order of docs/gallery/README.md.
var entries = []entry{
	{
		name:   "persistence",
		object: "redisexperiment/persistence",
		figure: "SET with appendfsync always, against no",
		value:  change("throughput", "appendfsync=always,test=set"),
	},
	{
		name:   "users-by-backend",
		object: "redisexperiment/users-by-backend",
		figure: "GET of 1000 rows from Redis, against MariaDB",
		value:  change("throughput", "backend=redis,rows=1000,method=GET,replicas=1"),
	},
	{
		name: "starved", object: "redisexperiment/starved", figure: "throughput with 0.1 cores",
		value: change("throughput", "cpu=0.1,bytes=128,disk=fast"),
	},
	{
		name: "pod-kill-when-steady", object: "redisloadtest/steady-load", figure: "recovery time",
		value: figure("recoveryTime", "pod-kill"),
	},
	{
		name: "pvc-multi-attach", object: "redisloadtest/attached-load", figure: "recovery time",
		value: figure("recoveryTime", "volume-left-behind"),
	},
	{
		name:   "cache-before-and-after",
		object: "redisexperiment/cache",
		figure: "throughput with the cache",
		value:  change("throughput", "backend=cached"),
	},
	{
		name:   "rate-limiter",
		object: "redisexperiment/rate-limiter",
		figure: "a pool whose callers share batches, against one without",
		value:  change("throughput", "client=pool-multiplexed"),
	},
	{
		name:   "ranking",
		object: "redisexperiment/ranking",
		figure: "throughput with 4 replicas, against none",
		value:  change("throughput", "replicas=4,spread=100000"),
	},
	{
		name:   "seven-failovers",
		object: "redisexperiment/seven-failovers",
		figure: "outage of a lost primary, Sentinel",
		value:  figure("outage", "topology=sentinel,change=primary-lost,commands=SET"),
	},
	{
		name:   "connection-age",
		object: "redisexperiment/connection-age",
		figure: "outage with young connections, Sentinel",
		value:  change("outage", "topology=sentinel"),
	},
	{
		name: "io-threads", object: "redisexperiment/io-threads", figure: "throughput with 2 threads",
		value: change("throughput", "threads=2"), refused: "config/gallery/io-threads/refused.yaml",
	},
	{
		name:   "io-threads-bitnami",
		object: "redisexperiment/io-threads",
		figure: "throughput with 2 threads",
		value:  change("throughput", "threads=2"),
	},
	{
		name:   "graceful-delete-loses-writes",
		object: "redisexperiment/graceful-delete",
		figure: "lost acknowledged writes of a forced delete",
		value:  figure("lostWrites", "delete=forced"),
	},
	{
		name:   "client-drivers",
		object: "redisexperiment/client-drivers",
		figure: "outage of go-redis as it comes",
		value:  figure("outage", "client=GoRedis"),
	},
	{
		name:       "primary-isolated",
		object:     "redisexperiment/isolated",
		figure:     "lost acknowledged writes",
		value:      figure("lostWrites", "writes=as-it-comes"),
		privileged: true,
	},
	{
		name:       "vanished-without-reset",
		object:     "redisexperiment/vanished",
		figure:     "outage of go-redis, 15 s without a reset",
		value:      figure("outage", "server=vanished,client=GoRedis"),
		privileged: true,
	},
	{
		name: "drain-both-copies", object: "redisloadtest/drained-load",
		figure: "outage of a shard, both copies evicted", value: figure("outage", "drain"),
	},
	{
		name: "drain-one-by-one", object: "redisloadtest/drained-load",
		figure: "outage, one after the other", value: figure("outage", "drain"),
	},
	{
		name: "zone-lost", object: "redisloadtest/zoned-load", figure: "outage",
		value: figure("outage", "lose-zone"), zones: true,
	},
	{
		name:     "operator-away",
		object:   "redisexperiment/operator-away",
		figure:   "outage of the Service's clients, operator away",
		value:    figure("outage", "clients=service,operator=away"),
		operator: true,
	},
	{
		name:    "overnight",
		object:  "redisexperimentschedule/overnight",
		figure:  "what the schedule says",
		planted: "config/gallery/overnight/planted.yaml",
	},
}
