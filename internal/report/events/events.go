// Package events is what the events of a fault mean, and whose they are.
package events

import (
	"cmp"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/report"
)

// OwnerName is what an owner is called within a sentence; of one that a later version named, its
// own name.
func OwnerName(o report.Owner) string {
	return cmp.Or(ownerNames[o], string(o), "an unknown owner")
}

var ownerNames = map[report.Owner]string{
	report.Kubernetes: "Kubernetes",
	report.Redis:      "Redis",
	report.Client:     "the clients",
	report.ByFault:    "the fault itself",
	report.Nobody:     "unexplained",
}

// Meaning says what an event is, which ended a phase; "" = it is not known.
func Meaning(event string) string {
	return ends[event]
}

var ends = map[string]string{
	"Injected":           "the fault was injected",
	"Active":             "the injection was complete on all targets",
	"Reverted":           "the fault was reverted",
	"EffectLost":         "something else reverted the fault",
	"InjectedBeside":     "another fault on the same load acted meanwhile",
	"FirstError":         "the first error, or the start of the first gap",
	"PodTerminating":     "the pod was being deleted",
	"PodDeleted":         "the pod’s object was gone",
	"ReplacementCreated": "another pod was created",
	"Scheduled":          "a node was chosen",
	"ContainerRestarted": "the container was restarted",
	"ContainerStarted":   "the kubelet had started the container",
	"ContainerExited":    "a container ended again",
	"OOMKilled":          "the kernel ended a container at its memory limit",
	"CrashLoopBackOff":   "the kubelet waited before it started a container again",
	"Ready":              "the readiness probe passed, so the Service may lead there",
	"Loading":            "a new server process answered LOADING, as it read its data",
	"DatasetLoaded":      "a new server process answered and had its data",
	"Promoted":           "a server was primary that was not before",
	"SubjectivelyDown":   "a sentinel or node missed the primary",
	"ObjectivelyDown":    "enough of them did",
	"Elected":            "a leader of the failover was elected",
	"Switched":           "the sentinels directed clients to the new primary",
	"FailoverStarted":    "the command was accepted",
	"OldPrimaryDemoted":  "the old primary was a replica",
	"FailedOver":         "another server was the primary",
	"NoFailover":         "the same pod was the primary again",
	"TwoPrimaries":       "it was not decided which server is the primary",
	"ClusterDown":        "the nodes refused commands",
	"SlotsCovered":       "all slots were served again",
	"ReplicasResynced":   "as many replicas as before followed, in sync",
	"MultiAttachError":   "the volume was refused: it was still attached elsewhere",
	"VolumeAttached":     "the volume was attached to the replacement’s node",
	"NodeNotReady":       "the node counted as not ready: the cluster had noticed",
	"NodeReady":          "the node counted as ready again",
	"FirstSuccess":       "the load’s connections had their first success",
	"ServerServes":       "the first success of the probe, which dials afresh",
	"Recovered":          "90 % of the baseline, and it held",
	"Unexplained":        "the probe had a success; nothing that was seen took the time",
}

// The events of whose owner the name alone tells: the source of a phase tells that of the others.
var (
	ownEvents = []string{
		"Injected", "Marked", "Active", "Reverted", "StopConditionMet",
		"EffectLost", "InjectedBeside",
	}
	kubernetes = []string{
		"PodTerminating", "PodDeleted", "ReplacementCreated", "Scheduled",
		"ContainerRestarted", "ContainerStarted", "Ready", "ContainerExited", "OOMKilled",
		"CrashLoopBackOff", "MultiAttachError", "VolumeAttached", "NodeNotReady", "NodeReady",
	}
	clientEvents = []string{"FirstError", "FirstSuccess", "Recovered", durations.Serves}
)

// OwnerOf is whose an event, or the phase that it ended, is, in the report of a run as in that of an
// experiment.
func OwnerOf(event string, source v1alpha1.PhaseSource) report.Owner {
	if source != "" {
		return report.Owner(source)
	}
	for owner, events := range map[report.Owner][]string{
		report.ByFault:    ownEvents,
		report.Kubernetes: kubernetes,
		report.Client:     clientEvents,
		report.Nobody:     {durations.Unexplained},
	} {
		for _, e := range events {
			if e == event {
				return owner
			}
		}
	}
	return report.Redis
}
