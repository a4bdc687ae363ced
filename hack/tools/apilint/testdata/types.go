// Package testdata has types with fields that each break the rule of the analyzer after which they are named.
package testdata

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

type good struct {
	// conditions of the object.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// names of things.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MaxLength=5
	Names []string `json:"names,omitempty"`
	// phases of a recovery.
	// +optional
	Phases int32 `json:"phases,omitempty"`
	// labels of things.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

type broken struct {
	// rates in requests.
	// +optional
	Commentstart int32 `json:"rate,omitempty"`
	// +optional
	Commentstart2 int32 `json:"undescribed,omitempty"`
	// neither optional nor required.
	Optionalorrequired int32 `json:"neither,omitempty"`
	// both optional and required.
	// +optional
	// +required
	Optionalorrequired2 int32 `json:"both,omitempty"`
	// ratio in percent.
	// +optional
	Nofloats float64 `json:"ratio,omitempty"`
	// name of it.
	// +optional
	Maxlength string `json:"name,omitempty"`
	// names of things.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	Maxlength2 []string `json:"names,omitempty"`
	// numbers of things.
	// +optional
	// +listType=set
	Maxlength3 []int32 `json:"numbers,omitempty"`
	// others of which it consists.
	// +optional
	// +kubebuilder:validation:MaxItems=3
	Ssatags []good `json:"others,omitempty"`
	// things by name.
	// +optional
	// +listType=map
	// +kubebuilder:validation:MaxItems=3
	Ssatags2 []good `json:"things,omitempty"`
	// objects by name.
	// +optional
	Nomaps map[string]good `json:"objects,omitempty"`
	// currentPhase of it.
	// +optional
	Namingconventions int32 `json:"currentPhase,omitempty"`
	// conditions that are not first.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
