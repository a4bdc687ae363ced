// Package v1alpha1 holds the objects of redquake.dev/v1alpha1: RedisLoadTest loads Redis,
// RedisFault breaks it under that load.
//
// Both run once, as a Job does. Conditions say where an object stands; there is no phase.
//
// +kubebuilder:object:generate=true
// +groupName=redquake.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is redquake.dev/v1alpha1.
var GroupVersion = schema.GroupVersion{Group: "redquake.dev", Version: "v1alpha1"}

var schemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &RedisLoadTest{}, &RedisLoadTestList{}, &RedisFault{},
		&RedisFaultList{}, &RedisExperiment{}, &RedisExperimentList{},
		&RedisExperimentSchedule{}, &RedisExperimentScheduleList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
})

// AddToScheme adds the kinds of this version to a scheme.
var AddToScheme = schemeBuilder.AddToScheme
