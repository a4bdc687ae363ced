package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RedisExperimentScheduleSpec defines an experiment that is run again and again.
// +kubebuilder:validation:XValidation:rule="!has(self.template.spec.objectives) || !self.template.spec.objectives.noRegression || has(self.compareTo)",message="noRegression needs compareTo: it is about an earlier run",fieldPath=".compareTo"
type RedisExperimentScheduleSpec struct {
	// template is the experiment of which every run is a copy. A change counts from the next run on.
	// +required
	Template ExperimentTemplate `json:"template,omitzero"`

	// schedule is when to run the experiment, in the format of cron, such as "0 3 * * 1" for 3:00 on
	// Mondays. Each run is a RedisExperiment, which has the name of the schedule and the scheduled
	// time in minutes since 1970.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ')",message="set timeZone instead of TZ or CRON_TZ in the schedule"
	// +kubebuilder:validation:XValidation:rule="self.matches('^(@(yearly|annually|monthly|weekly|daily|midnight|hourly|every [0-9a-z.]+)|[^@ ][^ ]*( +[^ ]+){4})$')",message="must be five fields (minute, hour, day of the month, month, day of the week), such as 0 3 * * 1, or @hourly, @daily, @weekly, @monthly or @yearly"
	Schedule string `json:"schedule,omitempty"`

	// timeZone of schedule, such as Europe/Berlin. Defaults to UTC.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	TimeZone *string `json:"timeZone,omitempty"`

	// concurrencyPolicy is what happens if a run is due while another one has not ended.
	// Forbid: it is skipped.
	// Replace: the other one is aborted, and deleted once everything is reverted; then this one
	// begins.
	// Runs never overlap: they would measure each other.
	// +optional
	// +kubebuilder:default=Forbid
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// startingDeadlineSeconds is how late a scheduled run may start. One that was missed by more is
	// skipped. Without it the latest missed run starts however late it is.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=31536000
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`

	// successfulRunsHistoryLimit is how many runs are kept whose verdict is not Fail. status.history
	// outlives them.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	SuccessfulRunsHistoryLimit *int32 `json:"successfulRunsHistoryLimit,omitempty"`

	// failedRunsHistoryLimit is how many runs are kept that failed, or whose verdict is Fail.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	FailedRunsHistoryLimit *int32 `json:"failedRunsHistoryLimit,omitempty"`

	// compareTo is the run with which each run is compared.
	// +optional
	CompareTo *ScheduleComparison `json:"compareTo,omitempty"`

	// notify sends a notification when the verdict of the runs changes, or something has regressed or
	// recovered.
	// +optional
	Notify *Notification `json:"notify,omitempty"`

	// suspend keeps further runs from being created until it is reset. The run that is under way ends
	// first.
	// +optional
	// +kubebuilder:default=false
	Suspend bool `json:"suspend,omitempty"`
}

// ExperimentTemplate is the experiment of a schedule's runs.
type ExperimentTemplate struct {
	// spec of the experiment. abort, suspend, ttlSecondsAfterFinished and compareTo must be absent:
	// the schedule has its own.
	// +required
	// +kubebuilder:validation:XValidation:rule="!self.abort && !self.suspend && !has(self.ttlSecondsAfterFinished) && !has(self.compareTo)",message="leave abort, suspend, ttlSecondsAfterFinished and compareTo out, and use suspend, successfulRunsHistoryLimit, failedRunsHistoryLimit and compareTo of the schedule"
	Spec RedisExperimentSpec `json:"spec,omitzero"`
}

// ScheduleComparison is the run with which the runs of a schedule are compared.
type ScheduleComparison struct {
	// run is last, the last run of this schedule that has figures, or the name of a finished
	// RedisExperiment in this namespace with the same cells.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Run string `json:"run,omitempty"`

	// confirm repeats a run in which something has regressed, at once: it counts as a regression if it
	// shows in both. A repetition that is inconclusive is followed by another one, up to three.
	// +optional
	// +kubebuilder:default=false
	Confirm bool `json:"confirm,omitempty"`
}

// ConcurrencyPolicy is what happens if a scheduled run is due while another one has not ended.
// +kubebuilder:validation:Enum=Forbid;Replace
type ConcurrencyPolicy string

// The policies.
const (
	// ConcurrencyForbid skips the new run.
	ConcurrencyForbid ConcurrencyPolicy = "Forbid"
	// ConcurrencyReplace ends the other one first.
	ConcurrencyReplace ConcurrencyPolicy = "Replace"
)

// Notification is a webhook. The operator sends a POST request to it, also again until the server
// accepts it: for about two hours, with waits between 10 s and 10 min. No run waits for it.
type Notification struct {
	// urlSecretRef is the key of a Secret that contains the URL, which begins with http:// or
	// https://. It is read for every request. Redirects are not followed. The operator sends only to
	// hosts that its flag --notify-hosts names, by default none.
	// +required
	URLSecretRef SecretKeyReference `json:"urlSecretRef,omitzero"`

	// template is the body, in the format of Go's text/template, with the fields .Namespace,
	// .Schedule, .Run, .Verdict, .Before, .Change, .Regressed, .Why, .Start and .Text, and the
	// functions json and slack; see docs/schedules.md. Defaults to the format of Slack's incoming
	// webhooks.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Template string `json:"template,omitempty"`
}

// RedisExperimentSchedule runs a RedisExperiment again and again, and compares the runs.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:shortName=rexps,categories=redquake
// +kubebuilder:selectablefield:JSONPath=`.status.verdict`
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="State of the schedule"
// +kubebuilder:printcolumn:name="Last",type=string,JSONPath=`.status.display.last`,description="When the last run was due"
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=`.status.verdict`,description="That of the last run: Pass, Fail or Inconclusive"
// +kubebuilder:printcolumn:name="Regressed",type=string,JSONPath=`.status.conditions[?(@.type=="Regressed")].status`,description="Whether something is worse than in an earlier run"
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.display.next`,description="When the next run is due"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 18 && !self.metadata.name.contains('.')",fieldPath=".metadata",message="the name must be at most 18 characters long and hold no dot: the names of its runs and of their children are made from it"
type RedisExperimentSchedule struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired schedule.
	// +required
	Spec RedisExperimentScheduleSpec `json:"spec,omitzero"`

	// status is the observed state and the history.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status RedisExperimentScheduleStatus `json:"status,omitzero"`
}

// RedisExperimentScheduleList is a list of RedisExperimentSchedules.
// +kubebuilder:object:root=true
type RedisExperimentScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []RedisExperimentSchedule `json:"items"`
}
