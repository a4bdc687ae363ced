package v1alpha1

import corev1 "k8s.io/api/core/v1"

// LoadPodTemplate is how load pods are made: their image, their place, and what the cluster needs
// to know about them.
type LoadPodTemplate struct {
	// image that contains the load agent. Defaults to the operator's image.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// imagePullSecrets are the Secrets of type kubernetes.io/dockerconfigjson by which the image is
	// pulled.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []SecretReference `json:"imagePullSecrets,omitempty"`

	// resources of each pod.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// nodeSelector for the pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations of the pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// affinity of the pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// topologySpreadConstraints of the pods. One without a labelSelector counts the load pods of this
	// test. Defaults to a spread over the nodes, as far as that is possible.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// priorityClassName of the pods.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// labels of the pods, beside those of Redquake.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['app.kubernetes.io/name', 'app.kubernetes.io/component', 'app.kubernetes.io/managed-by', 'job-name', 'controller-uid']) && !k.startsWith('redquake.dev/') && !k.startsWith('batch.kubernetes.io/'))",message="app.kubernetes.io/name, component and managed-by, redquake.dev/*, batch.kubernetes.io/*, job-name and controller-uid are set by Redquake and by the Job controller: leave them out"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="each key must be that of a label, such as team or example.com/team"
	Labels map[string]PodLabelValue `json:"labels,omitempty"`

	// jobLabels are labels of the Job of the pods, beside those of Redquake, such as a policy of the
	// cluster or a queue wants them (team, kueue.x-k8s.io/queue-name). They do not reach the pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['app.kubernetes.io/name', 'app.kubernetes.io/component', 'app.kubernetes.io/managed-by', 'job-name', 'controller-uid']) && !k.startsWith('redquake.dev/') && !k.startsWith('batch.kubernetes.io/'))",message="app.kubernetes.io/name, component and managed-by, redquake.dev/*, batch.kubernetes.io/*, job-name and controller-uid are set by Redquake and by the Job controller: leave them out"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="each key must be that of a label, such as team or example.com/team"
	JobLabels map[string]PodLabelValue `json:"jobLabels,omitempty"`

	// annotations of the pods, beside those of Redquake. Two are instructions to the load agent:
	// sidecar.redquake.dev/ready is the URL at which a sidecar answers once the network works, and
	// sidecar.redquake.dev/quit the one to which the agent sends POST at its end.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['cluster-autoscaler.kubernetes.io/safe-to-evict', 'karpenter.sh/do-not-disrupt']) && !k.startsWith('redquake.dev/') && !k.startsWith('batch.kubernetes.io/'))",message="cluster-autoscaler.kubernetes.io/safe-to-evict, karpenter.sh/do-not-disrupt, redquake.dev/* and batch.kubernetes.io/* are set by Redquake and by the Job controller: leave them out"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('sidecar.redquake.dev/') || (k in ['sidecar.redquake.dev/ready', 'sidecar.redquake.dev/quit'] && self[k].matches('^http://(localhost|127[.]0[.]0[.]1):[0-9]{1,5}(/[-A-Za-z0-9_./]*)?$')))",message="sidecar.redquake.dev/ready and sidecar.redquake.dev/quit are URLs of the pod itself, such as http://localhost:15020/quitquitquit"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="each key must be that of an annotation, such as example.com/inject"
	Annotations map[string]PodAnnotationValue `json:"annotations,omitempty"`
}

// PodLabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
type PodLabelValue string

// PodAnnotationValue is the value of an annotation.
// +kubebuilder:validation:MaxLength=4096
type PodAnnotationValue string
