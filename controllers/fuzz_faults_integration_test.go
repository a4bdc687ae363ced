//go:build integration

package controllers

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/redquake/redquake/api/v1alpha1"
)

// member draws the settings of the spec's type; optional ones are sometimes omitted.
func (d draw) member(spec *v1alpha1.RedisFaultSpec) {
	if d.yes() {
		spec.Duration = d.length(time.Second, 24*time.Hour)
	}
	spec.Deadline = d.length(time.Second, 336*time.Hour)
	if d.IntN(4) == 0 {
		spec.Allow = pick(d, []v1alpha1.Allowance{v1alpha1.AllowAllCopies}, []v1alpha1.Allowance{v1alpha1.AllowEviction, v1alpha1.AllowTooFewCores}, nil)
	}
	bare := d.IntN(3) == 0
	switch spec.Action.Type {
	case v1alpha1.FaultPodKill:
		if !bare {
			spec.Action.PodKill = &v1alpha1.PodKill{GracePeriodSeconds: maybe(d, int64(0), 3600)}
		}
	case v1alpha1.FaultProcessCrash:
		if !bare {
			spec.Action.ProcessCrash = &v1alpha1.ProcessCrash{Method: pick(d, "", v1alpha1.CrashShutdown, v1alpha1.CrashSegfault)}
		}
	case v1alpha1.FaultFailover:
		if !bare {
			spec.Action.Failover = &v1alpha1.Failover{
				Method:  pick(d, "", v1alpha1.FailoverAuto, v1alpha1.FailoverSentinel, v1alpha1.FailoverCluster, v1alpha1.FailoverReplication),
				Mode:    pick(d, "", v1alpha1.FailoverPlain, v1alpha1.FailoverCoordinated, v1alpha1.FailoverForce, v1alpha1.FailoverTakeover),
				Timeout: d.value(time.Second, time.Minute),
			}
		}
	case v1alpha1.FaultVolumeAttachDelay:
		if !bare {
			spec.Action.VolumeAttachDelay = &v1alpha1.VolumeAttachDelay{KeepAway: pick(d, "", v1alpha1.KeepAwayTaint, v1alpha1.KeepAwayNone), Image: d.text("", "x", "a b")}
		}
	case v1alpha1.FaultIOThreads:
		spec.Action.IOThreads = &v1alpha1.IOThreads{Count: pick(d, int32(0), 1, 2, 128), Reads: d.yes(), Method: pick(d, "", v1alpha1.ApplyAuto, v1alpha1.ApplyLive, v1alpha1.ApplyRoll)}
	case v1alpha1.FaultPodTemplate:
		spec.Action.PodTemplate = pick(d, nil, &v1alpha1.PodTemplate{}, templatePatch(`{"priorityClassName": "high"}`), templatePatch(`{"containers": [{"name": "redis"}], "nonsense": [1]}`),
			templatePatch(`{"containers": [{"image": "x"}]}`), templatePatch(`{"containers": null, "$patch": "replace"}`), templatePatch(`[]`))
	case v1alpha1.FaultConfig:
		spec.Action.Config = &v1alpha1.Config{Parameters: pick(d, map[string]v1alpha1.ParameterValue{"appendfsync": "always"}, map[string]v1alpha1.ParameterValue{"port": "1", "maxclients": "0"},
			map[string]v1alpha1.ParameterValue{"Bad Name": "x"}, nil, map[string]v1alpha1.ParameterValue{"maxmemory": ""})}
	case v1alpha1.FaultReplicaScale:
		spec.Action.ReplicaScale = &v1alpha1.ReplicaScale{By: pick(d, int32(-16), -1, 0, 1, 16), SyncTimeout: d.value(time.Second, time.Hour)}
	case v1alpha1.FaultResources:
		spec.Action.Resources = &v1alpha1.Resources{CPU: d.quantity("100m", "0", "-1", "1e9"), Memory: d.quantity("64Mi", "1", "0")}
	case v1alpha1.FaultHang:
		if !bare {
			spec.Action.Hang = &v1alpha1.Hang{Method: pick(d, "", v1alpha1.HangAuto, v1alpha1.HangDebugSleep, v1alpha1.HangScript, v1alpha1.HangClientPause)}
		}
	case v1alpha1.FaultClientPause:
		if !bare {
			spec.Action.ClientPause = &v1alpha1.ClientPause{Mode: pick(d, "", v1alpha1.PauseAll, v1alpha1.PauseWrite)}
		}
	case v1alpha1.FaultClientKill:
		if !bare {
			spec.Action.ClientKill = &v1alpha1.ClientKill{Type: pick(d, "", v1alpha1.ClientNormal, v1alpha1.ClientReplica, v1alpha1.ClientPubSub)}
		}
	case v1alpha1.FaultBackgroundSave:
		if !bare {
			spec.Action.BackgroundSave = &v1alpha1.BackgroundSave{Kind: pick(d, "", v1alpha1.SaveSnapshot, v1alpha1.SaveAppendOnlyRewrite)}
		}
	case v1alpha1.FaultNodeLoss:
		spec.Action.NodeLoss = &v1alpha1.NodeLoss{Node: d.text("node-1", "gone", "")}
	case v1alpha1.FaultExternal:
		d.external(spec, bare)
	}
}

// external draws the settings of a fault that breaks nothing: it selects nothing and does not last, or else is refused.
func (d draw) external(spec *v1alpha1.RedisFaultSpec, bare bool) {
	if !bare {
		spec.Action.External = &v1alpha1.External{WaitFor: d.value(time.Second, 24*time.Hour)}
	}
	if d.IntN(8) != 0 {
		spec.Select, spec.Duration, spec.Allow = v1alpha1.FaultSelector{}, nil, nil
	}
}

// marks are annotations of a fault of type External, also of others.
func (d draw) marks() map[string]string {
	return pick(d, nil, nil, map[string]string{v1alpha1.AnnotationMark: pick(d, "", "now", time.Now().Format(time.RFC3339Nano), "9999-12-31T23:59:59Z", "\x00 nonsense")})
}

func (d draw) quantity(values ...string) *resource.Quantity {
	if d.yes() {
		return nil
	}
	return new(resource.MustParse(pick(d, values...)))
}

// record is any record that a person or another version may have written of a target.
func (d draw) record(pod string) v1alpha1.FaultTarget {
	return v1alpha1.FaultTarget{
		Pod: pod, UID: "u", Node: pick(d, "", "node-1"), RunID: pick(d, "", "r"), Address: pick(d, "", "127.0.0.1:1"), Role: pick(d, "", v1alpha1.RolePrimary, v1alpha1.RoleReplica),
		IntendedAt: d.instant(), InjectedAt: d.instant(), ActiveAt: d.instant(), RevertedAt: d.instant(), LastError: pick(d, "", "x"), RevertError: pick(d, "", "y"), Progress: pick(d, "", "1 of 3"), RevertAbandoned: d.IntN(4) == 0,
		Revert: pick(d, nil, &v1alpha1.RevertRecord{Version: 1, Data: `{"old":{"appendfsync":"no"}}`}, &v1alpha1.RevertRecord{Version: 1, Data: "{nonsense"},
			&v1alpha1.RevertRecord{Version: 7, Data: `{"replicas":"many"}`}),
	}
}

// faultTypes are the types that need no Chaos Mesh.
var faultTypes = []v1alpha1.FaultType{
	v1alpha1.FaultPodKill, v1alpha1.FaultProcessCrash, v1alpha1.FaultFailover, v1alpha1.FaultVolumeAttachDelay, v1alpha1.FaultIOThreads, v1alpha1.FaultConfig, v1alpha1.FaultReplicaScale,
	v1alpha1.FaultResources, v1alpha1.FaultPodTemplate, v1alpha1.FaultHang, v1alpha1.FaultClientPause, v1alpha1.FaultClientKill, v1alpha1.FaultBackgroundSave, v1alpha1.FaultNodeLoss,
	v1alpha1.FaultExternal,
}
