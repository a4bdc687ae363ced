package v1alpha1

import "strings"

// Labels and annotations that the operator sets on child objects. Labels and annotations of the
// parent are not copied.
const (
	LabelName      = "app.kubernetes.io/name"
	LabelComponent = "app.kubernetes.io/component"
	LabelManagedBy = "app.kubernetes.io/managed-by"
	LabelLoadTest  = "redquake.dev/loadtest"
	LabelFault     = "redquake.dev/fault"

	// LabelExperiment, LabelRun and LabelRound on the load tests and faults of an experiment are its
	// name, the number of the run, and of its round.
	LabelExperiment = "redquake.dev/experiment"
	LabelRun        = "redquake.dev/run"
	LabelRound      = "redquake.dev/round"

	// LabelSchedule on the runs of a schedule is its name.
	LabelSchedule = "redquake.dev/schedule"

	// AnnotationGeneration on a Job is the generation of the load test for which it was created.
	AnnotationGeneration = "redquake.dev/generation"

	// AnnotationAddresses on a Job are the addresses of Redis that its load pods were given, separated
	// by commas.
	AnnotationAddresses = "redquake.dev/addresses"

	// AnnotationCell on a load test or a fault of an experiment is the cell that it is a run of, such
	// as appendfsync=always,users=1000.
	AnnotationCell = "redquake.dev/cell"

	// AnnotationScheduledAt on a run of a schedule is its scheduled time, in RFC 3339.
	// AnnotationConfirms is the run of which it is the repetition.
	// AnnotationReplaced is "true" if it was ended because another one was due.
	AnnotationScheduledAt = "redquake.dev/scheduled-at"
	AnnotationConfirms    = "redquake.dev/confirms"
	AnnotationReplaced    = "redquake.dev/replaced"

	// AnnotationSidecarReady and AnnotationSidecarQuit on load pods are the URLs of a sidecar: the
	// agent begins once the first answers, and sends POST to the second at its end.
	AnnotationSidecarReady = "sidecar.redquake.dev/ready"
	AnnotationSidecarQuit  = "sidecar.redquake.dev/quit"

	// AnnotationFormerPodTemplate, on a StatefulSet, is the pod template to which a fault of type
	// PodTemplate returns, as JSON.
	AnnotationFormerPodTemplate = "redquake.dev/former-pod-template"
	// AnnotationChangedPodTemplate, beside it, is the template that the fault has set, and the fault's
	// UID, as JSON.
	AnnotationChangedPodTemplate = "redquake.dev/changed-pod-template"

	// AnnotationProtected on a namespace forbids all faults in it: with any value but "false", see
	// SwitchedOn.
	AnnotationProtected = "redquake.dev/protected"
	// AnnotationStop on a namespace, with any value but "false", reverts and ends all faults in it; on
	// the operator's own namespace, those of all namespaces.
	AnnotationStop = "redquake.dev/stop"

	// AnnotationMark on a fault of type External is the instant at which Redis was broken: RFC 3339,
	// such as 2026-11-23T13:08:30.136662Z; empty or "now" is the instant at which the operator reads
	// it.
	AnnotationMark = "redquake.dev/mark"

	// AnnotationRerunOf on an object that the command line has created again is the name of the first
	// one with its spec.
	AnnotationRerunOf = "redquake.dev/rerun-of"

	// AnnotationBegunAs on a load test, a fault or an experiment is the UID as which it has begun to
	// run. It is left where the status is lost, as in a backup: an object without a status that has
	// another UID is a copy, and does not run until somebody removes the annotation.
	AnnotationBegunAs = "redquake.dev/begun-as"

	// TaintFault is the key of the taint by which a fault keeps new pods off a node, with the effect
	// NoSchedule; the value is the fault's UID.
	TaintFault = "redquake.dev/fault"
	// AnnotationTaintPrefix followed by the UID of a fault marks a node that the fault has tainted;
	// the value is the fault's namespace/name.
	AnnotationTaintPrefix = "tainted-by.redquake.dev/"
	// AnnotationPowerPrefix followed by the UID of a fault marks a node that the fault may have
	// switched off, and has not switched on again; the value is the fault's namespace/name.
	AnnotationPowerPrefix = "powered-off-by.redquake.dev/"

	// FinalizerFault keeps a fault until it is completely reverted.
	FinalizerFault = "redquake.dev/fault"
)

// SwitchedOn reports whether an annotation that protects from faults is set: with any value but
// "false". Whoever reaches for a brake may write True, yes, 1, or nothing behind the equals sign,
// and means it.
func SwitchedOn(annotations map[string]string, name string) bool {
	value, set := annotations[name]
	return set && !strings.EqualFold(strings.TrimSpace(value), "false")
}
