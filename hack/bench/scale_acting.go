package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// actingFaults are faults that a manager injects into real servers, and holds. Without load pods
// there is no load that runs: their targets are recorded here, as by a manager that has ended
// between the record and the injection.
type actingFaults struct {
	host    *host
	client  client.Client
	servers []*redistest.Server
	faults  []client.ObjectKey
}

// actFor is longer than the benchmark.
const actFor = 2 * time.Hour

// startActing starts servers with a pod each, and creates a fault for each.
func startActing(
	ctx context.Context, c client.Client, options *scaleOptions,
) (*actingFaults, error) {
	a := &actingFaults{host: &host{}, client: c}
	started := make(chan struct{})
	go func() { // a server that does not start ends this goroutine
		defer close(started)
		for i := range options.acting {
			a.servers = append(a.servers,
				redistest.NewServer(a.host, redistest.Options{
					Config: []string{"bind 127.0.0.1 " + actingIP(i)},
				}))
		}
	}()
	<-started
	if a.host.failed != nil {
		a.stop()
		return nil, a.host.failed
	}
	for i, server := range a.servers {
		if err := a.create(ctx, options, i, server); err != nil {
			a.stop()
			return nil, err
		}
	}
	return a, nil
}

func (a *actingFaults) stop() {
	a.host.end()
}

// actingIP is the address of a pod, on loopback.
func actingIP(i int) string {
	return fmt.Sprintf("127.0.1.%d", i+1)
}

func (a *actingFaults) create(
	ctx context.Context, options *scaleOptions, i int, server *redistest.Server,
) error {
	team := i % max(1, options.tests/100) // which has a pending load test
	name := fmt.Sprintf("acting-%d", i)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: teamName(team),
			Name:      name,
			Labels:    map[string]string{"app": name},
		},
		Spec: corev1.PodSpec{NodeName: nodeName(i), Containers: []corev1.Container{{
			Name:    "redis",
			Image:   "redis:7",
			Command: []string{"redis-server"},
			Ports:   []corev1.ContainerPort{{Name: "redis", ContainerPort: int32(server.Port)}},
		}}},
	}
	if err := a.client.Create(ctx, pod); err != nil {
		return err
	}
	now := metav1.NowMicro()
	pod.Status = corev1.PodStatus{
		Phase:     corev1.PodRunning,
		PodIP:     actingIP(i),
		PodIPs:    []corev1.PodIP{{IP: actingIP(i)}},
		StartTime: new(metav1.Time(now)),
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time(now)},
		},
		ContainerStatuses: []corev1.ContainerStatus{
			{
				Name:  "redis",
				Ready: true,
				Image: "redis:7",
				State: corev1.ContainerState{
					Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time(now)},
				},
			},
		},
	}
	if err := a.client.Status().Update(ctx, pod); err != nil {
		return err
	}
	f := &v1alpha1.RedisFault{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:  pod.Namespace,
			Name:       name,
			Finalizers: []string{v1alpha1.FinalizerFault},
		},
		Spec: v1alpha1.RedisFaultSpec{
			LoadTestRef: &v1alpha1.LoadTestReference{Name: testName(100*team + pendingFrom)},
			Duration:    &metav1.Duration{Duration: actFor},
			Deadline:    &metav1.Duration{Duration: 24 * time.Hour},
			Target:      &v1alpha1.RedisTarget{PodSelector: &metav1.LabelSelector{MatchLabels: pod.Labels}},
			Action: v1alpha1.Action{
				Type:   v1alpha1.FaultConfig,
				Config: &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"maxclients": "1000"}},
			},
		},
	}
	if err := a.client.Create(ctx, f); err != nil {
		return fmt.Errorf("create %s: %w", f.Name, err)
	}
	a.faults = append(a.faults, client.ObjectKeyFromObject(f))
	f.Status.StartTime, f.Status.Target, f.Status.LoadTest, f.Status.Holding = &now, f.Spec.Target,
		f.Spec.LoadTestRef.Name, new(true)
	f.Status.Targets = []v1alpha1.FaultTarget{{
		Pod:        pod.Name,
		UID:        string(pod.UID),
		Node:       pod.Spec.NodeName,
		Container:  "redis",
		Role:       v1alpha1.RolePrimary,
		Address:    fmt.Sprintf("%s:%d", actingIP(i), server.Port),
		RunID:      runID(server),
		IntendedAt: &now,
		Revert: &v1alpha1.RevertRecord{
			Version: contract.RecordVersion,
			Data:    `{"old":{"maxclients":"` + maxClients(server) + `"}}`,
		},
	}}
	return a.client.Status().Update(ctx, f)
}

// runID is the identity of a server's process.
func runID(server *redistest.Server) string {
	text, _ := server.Do("INFO", "server").(string)
	_, after, _ := strings.Cut(text, "run_id:")
	id, _, _ := strings.Cut(after, "\r")
	return id
}

// maxClients is the setting that the faults change.
func maxClients(server *redistest.Server) string {
	// without it the fault fails, which await reports
	found, _ := server.Client().ConfigGet(context.Background(), "maxclients").Result()
	return found["maxclients"]
}

// await waits until all faults act: the servers have the new setting, and the statuses say so.
func (a *actingFaults) await(ctx context.Context) error {
	var why error
	for began := time.Now(); time.Since(began) < time.Minute; {
		if why = a.act(ctx); why == nil {
			return nil
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return why
}

// act returns why a fault does not act.
func (a *actingFaults) act(ctx context.Context) error {
	for i, key := range a.faults {
		f := &v1alpha1.RedisFault{}
		if err := a.client.Get(ctx, key, f); err != nil {
			return err
		}
		if set := maxClients(a.servers[i]); f.Status.Effect != v1alpha1.EffectConfirmed ||
			f.Status.RevertedAt != nil || set != "1000" {
			return fmt.Errorf("fault %s does not act: maxclients is %s, and its conditions are %v", key, set,
				f.Status.Conditions)
		}
	}
	return nil
}

// measureActing measures a manager while faults act, and one that starts then. idle is the rate of
// its requests without them.
func (b *bigCluster) measureActing(
	ctx context.Context, kubeconfig, folder string, audit *audit, idle float64,
) ([]figure, error) {
	if b.options.acting == 0 {
		return nil, nil
	}
	c, err := b.typed()
	if err != nil {
		return nil, err
	}
	acting, err := startActing(ctx, c, b.options)
	if err != nil {
		return nil, err
	}
	defer acting.stop()
	m, err := startManager(ctx, b.options, kubeconfig, folder)
	if err != nil {
		return nil, err
	}
	defer m.stop()
	if err := acting.await(ctx); err != nil {
		return nil, err
	}
	if err := pause(ctx, settleTime); err != nil {
		return nil, err
	}
	from, cpu := time.Now(), m.cpu()
	if err := pause(ctx, b.options.idle); err != nil {
		return nil, err
	}
	to := time.Now()
	cores := (m.cpu() - cpu).Seconds() / to.Sub(from).Seconds()
	if err := acting.act(ctx); err != nil {
		return nil, err
	}
	peak := m.memory("VmHWM")
	m.stop() // the API server writes the log of a request when it has ended
	sent, err := audit.count(from, to)
	if err != nil {
		return nil, err
	}
	sent.print("requests while faults act")
	again, err := startManager(ctx, b.options, kubeconfig, folder)
	if err != nil {
		return nil, err
	}
	defer again.stop()
	started, err := again.awaitReconciled(ctx)
	if err != nil {
		return nil, err
	}
	each := (float64(sent.total())/to.Sub(from).Seconds() - idle) / float64(len(acting.faults))
	return []figure{
		{
			"manager's memory while faults act, the most", max(peak, again.memory("VmHWM")), "MiB",
			new(200.0),
		},
		// a check every 2 s reads the pod: 0.5,
		{"requests of each fault that acts", max(0, each), "1/s", new(0.75)},
		{"CPU while faults act", cores, "cores", nil},
		{"from the start to all objects reconciled while faults act", started.Seconds(), "s", new(15.0)},
		{"faults that act", float64(len(acting.faults)), "count", nil},
	}, acting.act(ctx)
}
