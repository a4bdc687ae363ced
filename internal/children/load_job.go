package children

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/agent"
)

// AgentContainer is the name of the load pods' container.
const AgentContainer = "agent"

// agentUser is the user and group of the load pods where the namespace assigns none: distroless's
// nonroot.
const agentUser = int64(65532)

// UserIDs are who chooses the user and group of a pod.
type UserIDs bool

// The choices.
const (
	FixedUserIDs    UserIDs = false // the pod
	AssignedUserIDs UserIDs = true  // the namespace, as on OpenShift, where the pod must not
)

// LoadJob is the Job of a load test's pods. image is the operator's own; spec.pods.image takes
// precedence. Pod i of the load is the Job's index i, which the Job controller sets as
// JOB_COMPLETION_INDEX.
func LoadJob(test *v1alpha1.RedisLoadTest, plan, image string, ids UserIDs) *batchv1.Job {
	spec := test.Spec.DeepCopy()
	own := image
	if spec.Pods.Image != "" {
		image = spec.Pods.Image
	}
	pod := loadPod(test, plan, spec, image, ids)
	addClient(&pod, &spec.Client, own)
	count := spec.Pods.Count
	meta := ofLoadTest(test, LoadJobName(test.Name), ComponentLoad)
	meta.Labels = with(spec.Pods.JobLabels, meta.Labels)
	meta.Annotations = map[string]string{
		v1alpha1.AnnotationGeneration: strconv.FormatInt(test.Generation, 10),
	}
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: meta,
		Spec: batchv1.JobSpec{
			CompletionMode: new(batchv1.IndexedCompletion),
			Completions:    new(count),
			Parallelism:    new(count),
			// A lost pod is never replaced: a second one would record another run. The others must not end
			// with it, as with backoffLimit 0: the Job controller ends every pod of a failed Job. The
			// operator decides by spec.pods.lost, so each index fails for itself, and the Job only when all
			// have ended.
			BackoffLimitPerIndex:  new(int32(0)),
			MaxFailedIndexes:      new(count),
			BackoffLimit:          new(int32(math.MaxInt32)),
			ActiveDeadlineSeconds: new(int64(jobDeadline(spec).Seconds())),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels: with(spec.Pods.Labels, LoadTestLabels(test.Name, ComponentLoad)),
					// A scale-down in the middle of a run would be measured as an outage of Redis.
					Annotations: with(spec.Pods.Annotations, map[string]string{
						"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
						"karpenter.sh/do-not-disrupt":                    "true",
					}),
				},
				Spec: pod,
			},
		},
	}
}

// jobDeadline ends the load pods even without an operator: the time to get ready, the longest run,
// the time that an agent keeps its record, and some minutes. A load that only a number of requests
// ends may be as long as a duration may be.
func jobDeadline(spec *v1alpha1.RedisLoadTestSpec) time.Duration {
	shape := Shape(spec)
	run := shape.Length()
	if run == 0 {
		run = maxLoadDuration
	}
	if spec.Verify != nil {
		run += agent.DefaultVerifyLimit
	}
	return spec.Pods.StartDeadline.Duration + run + agent.DefaultLinger + 5*time.Minute
}

// loadPod is under the restricted Pod Security Standard.
func loadPod(
	test *v1alpha1.RedisLoadTest, plan string, spec *v1alpha1.RedisLoadTestSpec, image string,
	ids UserIDs,
) corev1.PodSpec {
	volumes, mounts := loadVolumes(test, plan, &spec.Target, &spec.Workload)
	return corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: new(int64(30)), // the agent's drain takes 20 s of it
		AutomountServiceAccountToken:  new(false),     // a load pod does not use the API server
		EnableServiceLinks:            new(false),     // the variables are not used
		ImagePullSecrets:              pullSecrets(spec.Pods.ImagePullSecrets),
		NodeSelector:                  spec.Pods.NodeSelector,
		Tolerations:                   spec.Pods.Tolerations,
		Affinity:                      spec.Pods.Affinity,
		PriorityClassName:             spec.Pods.PriorityClassName,
		TopologySpreadConstraints:     spread(test.Name, spec.Pods.TopologySpreadConstraints),
		SecurityContext:               podSecurity(ids),
		Containers: []corev1.Container{{
			Name:    AgentContainer,
			Image:   image,
			Command: []string{"/redquake", "agent"},
			Args:    agentArgs(spec.Pods.Annotations),
			Ports: []corev1.ContainerPort{
				{
					Name:          "agent",
					ContainerPort: agent.Port,
					Protocol:      corev1.ProtocolTCP,
				},
			},
			Resources: loadResources(spec.Pods.Resources),
			// The operator polls the agent's status itself, so there is no readiness probe.
			VolumeMounts: mounts,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false),
				ReadOnlyRootFilesystem:   new(true),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			// The reason of a failure is on stderr; this copies it to the pod's status.
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		}},
		Volumes: volumes,
	}
}

func agentArgs(annotations map[string]v1alpha1.PodAnnotationValue) []string {
	args := []string{
		"--plan", path.Join(planDir, PlanKey),
		"--credentials", agentDir,
		"--listen", fmt.Sprintf(":%d", agent.Port),
	}
	url := annotations[v1alpha1.AnnotationSidecarReady]
	if url != "" {
		args = append(args, "--sidecar-ready", string(url))
	}
	url = annotations[v1alpha1.AnnotationSidecarQuit]
	if url != "" {
		args = append(args, "--sidecar-quit", string(url))
	}
	return args
}

// podSecurity is what the restricted Pod Security Standard asks for. A namespace that assigns users
// refuses others, and sets the group of files as well.
func podSecurity(ids UserIDs) *corev1.PodSecurityContext {
	security := &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if ids == FixedUserIDs {
		security.RunAsUser, security.RunAsGroup = new(agentUser), new(agentUser)
		security.FSGroup = new(agentUser) // so that the group may read the Secrets' files
	}
	return security
}

// spread is the user's, counting the pods of this load unless it says which, or an even
// distribution over the nodes as far as possible.
func spread(
	test string, constraints []corev1.TopologySpreadConstraint,
) []corev1.TopologySpreadConstraint {
	if len(constraints) == 0 {
		constraints = []corev1.TopologySpreadConstraint{{
			MaxSkew:           1,
			TopologyKey:       corev1.LabelHostname,
			WhenUnsatisfiable: corev1.ScheduleAnyway, // two pods on one node are better than none
		}}
	}
	for i := range constraints {
		if constraints[i].LabelSelector == nil {
			constraints[i].LabelSelector = &metav1.LabelSelector{
				MatchLabels: LoadTestLabels(test, ComponentLoad),
			}
		}
	}
	return constraints
}

func pullSecrets(refs []v1alpha1.SecretReference) []corev1.LocalObjectReference {
	var secrets []corev1.LocalObjectReference
	for _, ref := range refs {
		secrets = append(secrets, corev1.LocalObjectReference{Name: ref.Name})
	}
	return secrets
}

// with adds the user's labels or annotations to those of Redquake, which take precedence.
func with[V ~string](theirs map[string]V, ours map[string]string) map[string]string {
	for key, value := range theirs {
		if _, taken := ours[key]; !taken {
			ours[key] = string(value)
		}
	}
	return ours
}

// loadResources are the user's, or the default. There is no CPU limit by default: CFS throttles a
// limited pod for tens of milliseconds at a time, which would be measured as latency of Redis.
func loadResources(resources *corev1.ResourceRequirements) corev1.ResourceRequirements {
	if resources != nil {
		return *resources
	}
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("100m"),
			corev1.ResourceMemory: resource.MustParse("64Mi"),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
	}
}
