package config

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
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

// templateEdit is a change of a StatefulSet's template, with the state before it.
type templateEdit struct {
	StatefulSet string                           `json:"statefulSet"`
	UID         string                           `json:"uid"`
	Before      []string                         `json:"before"` // what the source returned
	After       []string                         `json:"after"`  //
	Strategy    appsv1.StatefulSetUpdateStrategy `json:"strategy"`

	optionSource
}

// apply writes what the source sets and the strategy in one patch, unless the StatefulSet has
// changed since it was read.
func (t ioThreads) apply(
	ctx context.Context, set *appsv1.StatefulSet, source optionSource, words []string,
	strategy appsv1.StatefulSetUpdateStrategy,
) error {
	changed := set.DeepCopy()
	container := containerIn(&changed.Spec.Template.Spec, source.Container)
	if container == nil {
		return fmt.Errorf("the template of StatefulSet %s has no longer a container %s", set.Name,
			source.Container)
	}
	source.set(container, words)
	changed.Spec.UpdateStrategy = strategy
	if reflect.DeepEqual(set, changed) {
		return nil
	}
	err := t.Cluster.Patch(ctx, changed,
		client.StrategicMergeFrom(set, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("patch the template of StatefulSet %s: %w", set.Name, err)
	}
	return nil
}

func containerIn(pod *corev1.PodSpec, name string) *corev1.Container {
	for i := range pod.Containers {
		if pod.Containers[i].Name == name {
			return &pod.Containers[i]
		}
	}
	return nil
}
