package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Why a setting may not be changed.
const (
	cutsOff     = "it can disconnect Redquake, the replicas or the clients, and prevent a revert"
	holdsSecret = "it is a secret or controls who may log in; values are recorded in the status"
	movesData   = "it controls where or when data is written, and files cannot be moved back"
	losesData   = "writes that a replica accepts meanwhile cannot be reverted"
	atStart     = "it can only be set at the server's start"
	otherFault  = "the fault of type IOThreads changes it, behind a guard"
)

// deniedNames and deniedPrefixes are settings that may not be changed, by name and by prefix.
// Secrets must be among them.
var deniedNames = map[string]string{
	"port":                cutsOff,
	"bind":                cutsOff,
	"bind-source-addr":    cutsOff,
	"unixsocket":          cutsOff,
	"unixsocketperm":      cutsOff,
	"protected-mode":      cutsOff,
	"maxmemory-clients":   "the server would close Redquake's own connections, too",
	"replicaof":           "use a fault of type Failover or ReplicaScale",
	"slaveof":             "use a fault of type Failover or ReplicaScale",
	"replica-read-only":   losesData,
	"slave-read-only":     losesData,
	"requirepass":         holdsSecret,
	"masterauth":          holdsSecret,
	"masteruser":          holdsSecret,
	"primaryauth":         holdsSecret,
	"primaryuser":         holdsSecret,
	"aclfile":             holdsSecret,
	"user":                holdsSecret,
	"hash-seed":           holdsSecret,
	"dir":                 movesData,
	"dbfilename":          movesData,
	"save":                movesData,
	"appendfilename":      movesData,
	"appenddirname":       movesData,
	"logfile":             movesData,
	"pidfile":             movesData,
	"cluster-config-file": movesData,
	"cluster-enabled":     atStart,
	"cluster-port":        atStart,
	"rename-command":      atStart,
	"include":             atStart,
	"loadmodule":          atStart,
	"databases":           atStart,
	"daemonize":           atStart,
	"io-threads":          otherFault,
	"io-threads-do-reads": otherFault,
}

var deniedPrefixes = []struct{ prefix, why string }{
	{"cluster-announce-", cutsOff},
	{"replica-announce", cutsOff},
	{"slave-announce", cutsOff},
	{"tls-", cutsOff},
	{"rdma-", cutsOff},
	{"enable-", "it controls who may run dangerous commands"},
}

// denied returns why a setting may not be changed; "" where it may.
func denied(name string) string {
	for _, d := range deniedPrefixes {
		if strings.HasPrefix(name, d.prefix) {
			return d.why
		}
	}
	return deniedNames[name]
}

// evicting are the settings that may cause a server to evict data.
var evicting = []string{
	"maxmemory", "maxmemory-policy", "replica-ignore-maxmemory",
	"slave-ignore-maxmemory",
}

// evicts returns why new settings would cause a server to evict data; "" where it would not evict
// more than before.
func evicts(before, asked map[string]string) string {
	limit, policy := before["maxmemory"], before["maxmemory-policy"]
	if v, ok := asked["maxmemory"]; ok {
		limit = v
	}
	if v, ok := asked["maxmemory-policy"]; ok {
		policy = v
	}
	bytes, known := memorySize(limit)
	if strings.EqualFold(policy, "noeviction") || known && bytes == 0 {
		return ""
	}
	if asked["replica-ignore-maxmemory"] == "no" || asked["slave-ignore-maxmemory"] == "no" {
		return fmt.Sprintf("a replica with maxmemory %s and policy %s evicts by itself", limit, policy)
	}
	was, _ := memorySize(before["maxmemory"])
	if before["maxmemory-policy"] == policy && was > 0 && known && bytes >= was {
		return ""
	}
	return fmt.Sprintf("with maxmemory %s and policy %s the server evicts data", limit, policy)
}

// memorySize reads a size as Redis does: 1000000, 100mb, 1g. k, m and g are powers of 1000, kb, mb
// and gb of 1024.
func memorySize(text string) (bytes uint64, ok bool) {
	text = strings.ToLower(text)
	digits := strings.TrimRight(text, "kmgb")
	units := map[string]uint64{
		"":   1,
		"b":  1,
		"k":  1e3,
		"kb": 1 << 10,
		"m":  1e6,
		"mb": 1 << 20,
		"g":  1e9,
		"gb": 1 << 30,
	}
	unit, ok := units[text[len(digits):]]
	n, err := strconv.ParseUint(digits, 10, 64)
	return n * unit, ok && err == nil
}
