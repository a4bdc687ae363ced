package v1alpha1

// Labels and names that the operator puts on its children. No label or annotation of the parent is copied.
const (
	LabelName      = "app.kubernetes.io/name"
	LabelComponent = "app.kubernetes.io/component"
	LabelManagedBy = "app.kubernetes.io/managed-by"
	LabelLoadTest  = "redquake.dev/loadtest"
	LabelFault     = "redquake.dev/fault"

	// AnnotationGeneration on a Job is the generation of the load test that its pods were made for.
	AnnotationGeneration = "redquake.dev/generation"

	// AnnotationProtected on a namespace, "true", forbids all faults in it.
	AnnotationProtected = "redquake.dev/protected"
	// AnnotationStop on a namespace, "true", undoes and ends all faults in it; on the operator's own namespace, all faults there are.
	AnnotationStop = "redquake.dev/stop"

	// AnnotationCordonPrefix and the UID of a fault, on a node that the fault made unschedulable; the value is the fault's namespace/name.
	AnnotationCordonPrefix = "cordoned-by.redquake.dev/"

	// FinalizerFault keeps a fault until everything it did is undone.
	FinalizerFault = "redquake.dev/fault"
)
