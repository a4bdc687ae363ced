package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Guarantees are what applications count on that use Redis as the workload does, with how often that
// was false during the load.
type Guarantees struct {
	// lock is what happened to the locks of workload lock.
	// +optional
	Lock *LockFigures `json:"lock,omitempty"`

	// untold is why the figures are not those of the whole load: load pods were lost. They are lower
	// bounds then.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Untold string `json:"untold,omitempty"`
}

// LockFigures are what happened to locks, as their holders saw it: each counts on a lock from when it
// was told that it has it until it decides to give it up, is told that it is gone, or its TTL has
// passed by the holder's own clock.
type LockFigures struct {
	// taken is how often any user took a lock.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Taken int64 `json:"taken"`

	// overlaps is how often a user took a lock while another one still counted on it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Overlaps int64 `json:"overlaps"`

	// longestOverlap is the longest time for which two users counted on the same lock.
	// +optional
	LongestOverlap Duration `json:"longestOverlap"`

	// firstOverlap is when the first of these times began.
	// +optional
	FirstOverlap *metav1.MicroTime `json:"firstOverlap,omitempty"`

	// lastOverlap is when the last of these times ended.
	// +optional
	LastOverlap *metav1.MicroTime `json:"lastOverlap,omitempty"`

	// lost is how many locks were gone, or another user's, before their holders gave them up and before
	// their TTL had passed.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Lost int64 `json:"lost"`

	// expired is how many locks their holders could not renew in time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Expired int64 `json:"expired"`

	// unreplicated is how many locks were given up at once, as fewer replicas than waitReplicas had
	// them in time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Unreplicated int64 `json:"unreplicated"`

	// longestUnheld is the longest time for which a lock had no holder, from its first holder to the
	// end of the load.
	// +optional
	LongestUnheld Duration `json:"longestUnheld"`

	// fencesBackwards is how many fencing tokens were not above an earlier one of the same lock. Set
	// with fencing.
	// +optional
	// +kubebuilder:validation:Minimum=0
	FencesBackwards *int64 `json:"fencesBackwards,omitempty"`
}
