package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RedisExperimentScheduleStatus is the state of a schedule, and what its runs have shown.
type RedisExperimentScheduleStatus struct {
	// conditions are the state of the schedule: Ready, Regressed, Notified, Suspended, Reconciling,
	// Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation that the conditions refer to; -1 before the operator has
	// processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// display is formatted text for the columns of kubectl get. Programs should read the other fields.
	// +optional
	Display *ScheduleDisplay `json:"display,omitempty"`
	// active is the name of the RedisExperiment that runs.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Active string `json:"active,omitempty"`
	// lastScheduleTime is the scheduled time of the last run that was created.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// nextScheduleTime is that of the next one.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
	// lastSuccessfulTime is when a run last ended that has not failed.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`
	// skipped counts the scheduled times at which no run was created: another one had not ended, it
	// could not start in time, or it was missed; of those missed at once at most 100.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Skipped int64 `json:"skipped,omitempty"`
	// history is the last runs, the latest one last. The figures of more runs are in the ConfigMap
	// that status.results names.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	History []ScheduledRun `json:"history,omitempty"`
	// changes are where the level of a figure changed over the runs, the latest one last.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Changes []FigureChange `json:"changes,omitempty"`
	// notification is what people were notified of, see spec.notify.
	// +optional
	Notification *ScheduleNotification `json:"notification,omitempty"`
	// verdict of the last run; absent if it could not complete.
	// Pass: every objective is met.
	// Fail: an objective is missed.
	// Inconclusive: the runs do not show which.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`
	// results is the name of the ConfigMap with the figures of the runs.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Results string `json:"results,omitempty"`
}

// ScheduleDisplay is formatted text about a schedule.
type ScheduleDisplay struct {
	// last is the scheduled time of the last run that was created, in the time zone of the schedule.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Last string `json:"last,omitempty"`
	// next is that of the next one.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Next string `json:"next,omitempty"`
}

// ScheduleNotification is the last notification that was accepted, and the one that was not. A run
// whose verdict is the same, and in which as much has regressed, has none.
type ScheduleNotification struct {
	// run is the name of the run of the last notification that was accepted; absent before the first
	// one.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Run string `json:"run,omitempty"`
	// verdict of that run; absent if it could not complete.
	// Pass: every objective is met.
	// Fail: an objective is missed.
	// Inconclusive: the runs do not show which.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`
	// regressed is whether something had regressed then.
	// +optional
	Regressed bool `json:"regressed,omitempty"`
	// time at which the server accepted it.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
	// attempt is the notification that is due and was not accepted.
	// +optional
	Attempt *NotificationAttempt `json:"attempt,omitempty"`
}

// NotificationAttempt is a notification that was not accepted.
type NotificationAttempt struct {
	// run of which it is to notify.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Run string `json:"run,omitempty"`
	// count of the attempts; after 18 there are no more.
	// +required
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count,omitempty"`
	// time of the last one.
	// +required
	Time metav1.Time `json:"time,omitzero"`
}

// ScheduledRun is a run of a schedule that has ended.
type ScheduledRun struct {
	// name of its RedisExperiment, which may have been deleted since.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// startTime of the run.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// verdict of the run; absent if it could not complete.
	// Pass: every objective is met.
	// Fail: an objective is missed.
	// Inconclusive: the runs do not show which.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`
	// confirms is the name of the run of which it is the repetition, see spec.compareTo.confirm.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Confirms string `json:"confirms,omitempty"`
	// regressed is how many comparisons with the earlier run show a regression.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Regressed int32 `json:"regressed,omitempty"`
	// message is why it could not complete, or the first regression.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// FigureChange is a change of the level of a figure over the runs of a schedule.
type FigureChange struct {
	// cell of which it is a figure.
	// +required
	// +kubebuilder:validation:MaxLength=640
	Cell string `json:"cell,omitempty"`
	// figure that changed, as in spec.compare.figures.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Figure string `json:"figure,omitempty"`
	// since is the name of the first run on the new level.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Since string `json:"since,omitempty"`
	// found is the name of the run with which it was found.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Found string `json:"found,omitempty"`
	// change of the median, relative, such as 0.2 for 20 % more.
	// +required
	Change Decimal `json:"change,omitempty"`
	// worse is whether that is a change to the worse.
	// +optional
	Worse bool `json:"worse,omitempty"`
}
