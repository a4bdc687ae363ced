package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/internal/fault/declared"
)

const (
	// writers is how many requests of the benchmark are in flight at once.
	writers = 48
	// podNamespaces and teams are the namespaces of the foreign pods, and those of the load tests and
	// faults.
	podNamespaces, teams = 300, 10
)

// bigCluster fills an API server. No controller and no kubelet runs, so that everything stays as it
// is written.
type bigCluster struct {
	options *scaleOptions
	config  *rest.Config
	core    kubernetes.Interface
}

func (b *bigCluster) fill(ctx context.Context) error {
	compact := rest.CopyConfig(b.config)
	compact.ContentType = runtime.ContentTypeProtobuf
	compact.AcceptContentTypes = runtime.ContentTypeProtobuf
	var err error
	if b.core, err = kubernetes.NewForConfig(compact); err != nil {
		return err
	}
	began := time.Now()
	if err := parallel(ctx, podNamespaces+teams+1, b.createNamespace); err != nil {
		return err
	}
	if err := parallel(ctx, b.options.nodes, b.createNode); err != nil {
		return err
	}
	if err := parallel(ctx, b.options.pods, b.createPod); err != nil {
		return err
	}
	fmt.Printf("%d pods and %d nodes after %.0f s\n", b.options.pods, b.options.nodes,
		time.Since(began).Seconds())
	return b.createObjects(ctx)
}

// parallel calls make with 0 to n-1, several at once.
func parallel(ctx context.Context, n int, make func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error { return make(ctx, i) })
	}
	return group.Wait()
}

func namespaceName(i int) string {
	switch {
	case i == podNamespaces+teams:
		return managerHome
	case i >= podNamespaces:
		return teamName(i - podNamespaces)
	}
	return fmt.Sprintf("tenant-%d", i)
}

func teamName(i int) string {
	return fmt.Sprintf("team-%d", i%teams)
}

func (b *bigCluster) createNamespace(ctx context.Context, i int) error {
	_, err := b.core.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceName(i)}}, metav1.CreateOptions{})
	return err
}

func (b *bigCluster) createNode(ctx context.Context, i int) error {
	ready := metav1.Now()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{
			corev1.LabelTopologyZone:       fmt.Sprintf("zone-%d", i%3),
			corev1.LabelInstanceTypeStable: "m6i.8xlarge",
			corev1.LabelHostname:           nodeName(i),
		}},
		Spec: corev1.NodeSpec{ProviderID: fmt.Sprintf("cloud:///zone-%d/%d", i%3, i)},
	}
	made, err := b.core.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("32"),
		corev1.ResourceMemory: resource.MustParse("128Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	made.Status.Allocatable = made.Status.Capacity
	for _, kind := range []corev1.NodeConditionType{
		corev1.NodeReady, corev1.NodeMemoryPressure,
		corev1.NodeDiskPressure, corev1.NodePIDPressure,
	} {
		status := corev1.ConditionFalse
		if kind == corev1.NodeReady {
			status = corev1.ConditionTrue
		}
		made.Status.Conditions = append(made.Status.Conditions, corev1.NodeCondition{
			Type:               kind,
			Status:             status,
			LastHeartbeatTime:  ready,
			LastTransitionTime: ready,
			Reason:             "KubeletReady",
			Message:            "kubelet is posting ready status",
		})
	}
	for n := range 40 { // the kubelet lists up to 50
		made.Status.Images = append(made.Status.Images, corev1.ContainerImage{
			Names:     []string{fmt.Sprintf("registry.example.com/team/service-%d@sha256:%064d", n, n)},
			SizeBytes: 123_456_789,
		})
	}
	_, err = b.core.CoreV1().Nodes().
		UpdateStatus(ctx, made, metav1.UpdateOptions{FieldManager: "kubelet"})
	return err
}

func nodeName(i int) string {
	return fmt.Sprintf("ip-10-%d-%d-%d.cloud.internal", i>>16, i>>8&255, i&255)
}

// podPhases are the phases of the foreign pods: of a hundred, most run.
var podPhases = map[int]corev1.PodPhase{
	7:  corev1.PodPending,
	50: corev1.PodPending,
	23: corev1.PodSucceeded,
	71: corev1.PodSucceeded,
	99: corev1.PodFailed,
}

func (b *bigCluster) createPod(ctx context.Context, i int) error {
	namespace := namespaceName(i % podNamespaces)
	pod, err := b.core.CoreV1().Pods(namespace).
		Create(ctx, b.pod(i), metav1.CreateOptions{FieldManager: "kube-controller-manager"})
	if err != nil {
		return err
	}
	now := metav1.Now()
	pod.Status.Phase = corev1.PodRunning
	if phase, other := podPhases[i%100]; other {
		pod.Status.Phase = phase
	}
	pod.Status.PodIP, pod.Status.StartTime = fmt.Sprintf("10.%d.%d.%d", 128+i>>16, i>>8&255,
		i&255), &now
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	for _, kind := range []corev1.PodConditionType{
		corev1.PodInitialized, corev1.PodReady,
		corev1.ContainersReady, corev1.PodScheduled,
	} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type:               kind,
			Status:             corev1.ConditionTrue,
			LastTransitionTime: now,
		})
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name:        c.Name,
			Ready:       true,
			Image:       c.Image,
			ImageID:     fmt.Sprintf("registry.example.com/team/%s@sha256:%064d", c.Name, i),
			ContainerID: fmt.Sprintf("containerd://%064d", i),
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	_, err = b.core.CoreV1().Pods(namespace).
		UpdateStatus(ctx, pod, metav1.UpdateOptions{FieldManager: "kubelet"})
	return err
}

// pod is one of a Deployment with a sidecar, of about the size that was asked for.
func (b *bigCluster) pod(i int) *corev1.Pod {
	app := fmt.Sprintf("service-%d", i%900)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-6d5f8b7c9-%05d", app, i),
			Labels: map[string]string{
				"app.kubernetes.io/name":       app,
				"app.kubernetes.io/part-of":    "shop",
				"app.kubernetes.io/managed-by": "Helm",
				"pod-template-hash":            "6d5f8b7c9",
			},
			Annotations: map[string]string{
				"checksum/config":      fmt.Sprintf("%064d", i),
				"prometheus.io/scrape": "true",
			},
		},
		Spec: corev1.PodSpec{
			NodeName: nodeName(i % max(b.options.nodes, 1)),
			Tolerations: []corev1.Toleration{
				{
					Key:               corev1.TaintNodeNotReady,
					Operator:          corev1.TolerationOpExists,
					Effect:            corev1.TaintEffectNoExecute,
					TolerationSeconds: new(int64(300)),
				},
				{
					Key:               corev1.TaintNodeUnreachable,
					Operator:          corev1.TolerationOpExists,
					Effect:            corev1.TaintEffectNoExecute,
					TolerationSeconds: new(int64(300)),
				},
			},
		},
	}
	for _, name := range []string{"server", "proxy"} {
		c := corev1.Container{
			Name:    name,
			Image:   "registry.example.com/team/" + name + ":1.2.3",
			Command: []string{"/" + name, "--config=/etc/config.yaml"},
			Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/config"}},
		}
		// with its entry in managedFields, 170 bytes
		for n := range max(0, (b.options.podBytes-5200)/2/170) {
			c.Env = append(c.Env, corev1.EnvVar{
				Name:  fmt.Sprintf("SETTING_%d", n),
				Value: fmt.Sprintf("value-%d-of-%s", n, app),
			})
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	p.Spec.Volumes = []corev1.Volume{
		{
			Name: "config",
			VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: app},
				},
			},
		},
	}
	return p
}

// grant gives the manager's user the roles that config/rbac gives to its ServiceAccount.
func grant(ctx context.Context, config *rest.Config) error {
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	user := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: managerUser}}
	files := []string{"role.yaml", "cluster_role.yaml"}
	for _, o := range declared.All {
		if len(o.Grants) > 0 && o.Component == "" { // those of the default installation
			files = append(files, "faults/"+o.Name()+".yaml")
		}
	}
	for _, file := range files {
		role := &rbacv1.ClusterRole{}
		if err := readYAML("config/rbac/"+file, role); err != nil {
			return err
		}
		if _, err := core.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
			return err
		}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			Subjects:   user,
			RoleRef: rbacv1.RoleRef{
				APIGroup: rbacv1.GroupName,
				Kind:     "ClusterRole",
				Name:     role.Name,
			},
		}
		if _, err := core.RbacV1().ClusterRoleBindings().Create(ctx, binding,
			metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	election := &rbacv1.Role{}
	if err := readYAML("config/rbac/leader_election_role.yaml", election); err != nil {
		return err
	}
	election.Namespace = managerHome
	if _, err := core.RbacV1().Roles(managerHome).Create(ctx, election,
		metav1.CreateOptions{}); err != nil {
		return err
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: election.Name},
		Subjects:   user,
		RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName,
			Kind:     "Role",
			Name:     election.Name,
		},
	}
	_, err = core.RbacV1().RoleBindings(managerHome).Create(ctx, binding, metav1.CreateOptions{})
	return err
}

// readYAML reads the first object of a file.
func readYAML(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	first, _, _ := bytes.Cut(text, []byte("\n---\n"))
	if err := yaml.Unmarshal(bytes.TrimPrefix(first, []byte("---\n")), into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
