package volume

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/diskfilltest"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// fullWorld is redis-0, which keeps its data on a claim of 1 GiB.
type fullWorld struct {
	*faulttest.World
	volumes *diskfilltest.Volumes
	hit     *v1alpha1.FaultTarget
}

func newFullWorld(t *testing.T, changeClaim func(*corev1.PersistentVolumeClaim), changePod func(*corev1.Pod)) *fullWorld {
	t.Helper()
	held := claim("c0")
	held.Status = corev1.PersistentVolumeClaimStatus{
		Phase:       corev1.ClaimBound,
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
	}
	if changeClaim != nil {
		changeClaim(held)
	}
	w := &fullWorld{World: faulttest.NewWorld(t, held)}
	w.volumes = diskfilltest.New(w.Cluster)
	w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) {
		mounts("data-redis-0")(p)
		p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(999)), FSGroup: new(int64(998))}
		if changePod != nil {
			changePod(p)
		}
	})
	w.Servers.At("10.0.0.1:6379").Set("appendonly", "yes")
	w.hit = &v1alpha1.FaultTarget{
		Pod: "redis-0", UID: "u0", RunID: "run-u0", Container: "redis", Address: "10.0.0.1:6379", Node: "node-1",
	}
	return w
}

func (w *fullWorld) full(change func(*v1alpha1.RedisFaultSpec)) contract.Injector {
	w.T.Helper()
	spec := &v1alpha1.RedisFaultSpec{
		Action:   v1alpha1.Action{Type: v1alpha1.FaultDiskFull, DiskFull: &v1alpha1.DiskFull{Leave: resource.MustParse("16Mi")}},
		Duration: &metav1.Duration{Duration: 20 * time.Second},
	}
	if change != nil {
		change(spec)
	}
	deps := w.Deps()
	deps.Programs, deps.Image = w.volumes, "redquake:test"
	injector, err := Kinds.For(spec, deps)
	faulttest.Must(w.T, err)
	return injector
}

// holder is the holder pod, with a phase that its kubelet gives it; nil = there is none.
func (w *fullWorld) holder(phase corev1.PodPhase) *corev1.Pod {
	w.T.Helper()
	var pods corev1.PodList
	faulttest.Must(w.T, w.Cluster.List(context.Background(), &pods, client.MatchingLabels{v1alpha1.LabelComponent: "volume-holder"}))
	if len(pods.Items) == 0 {
		return nil
	}
	if phase != "" {
		w.Update(&pods.Items[0], func(p *corev1.Pod) { p.Status.Phase = phase })
	}
	return &pods.Items[0]
}

func (w *fullWorld) says(injector contract.Injector, want v1alpha1.Effect, text string) {
	w.T.Helper()
	if got, evidence := injector.Effect(w.T.Context(), w.hit); got != want || !strings.Contains(evidence, text) {
		w.T.Errorf("effect %s: %s; want %s about %q", got, evidence, want, text)
	}
}

func TestDiskFull(t *testing.T) {
	w := newFullWorld(t, nil, nil)
	injector := w.full(nil)
	faulttest.Must(t, injector.Preflight(t.Context(), w.hit))
	if w.holder("") != nil {
		t.Fatal("the preflight has made a pod")
	}
	prepare := injector.(contract.Preparer).Prepare
	faulttest.MustPrepare(t, faulttest.Called(prepare(t.Context(), w.hit)), "is created on node node-1")
	faulttest.MustPrepare(t, faulttest.Called(prepare(t.Context(), w.hit)), "does not run yet")
	holder := w.holder(corev1.PodRunning)
	security := holder.Spec.SecurityContext
	if *security.RunAsUser != 999 || !slices.Equal(security.SupplementalGroups, []int64{998}) || security.FSGroup != nil ||
		holder.Spec.NodeName != "node-1" || holder.Spec.Containers[0].Image != "redquake:test" {
		t.Errorf("the holder pod is %+v", holder.Spec)
	}
	faulttest.Must(t, faulttest.Called(prepare(t.Context(), w.hit)))
	if begun, err := injector.Begun(t.Context(), w.hit); begun || err != nil || len(w.volumes.Full(t.Context(), faulttest.Namespace)) > 0 {
		t.Fatalf("begun %t, %v before it was injected", begun, err)
	}
	for range 2 {
		faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), w.hit)))
	}
	if begun, err := injector.Begun(t.Context(), w.hit); !begun || err != nil || len(w.volumes.Full(t.Context(), faulttest.Namespace)) != 1 {
		t.Errorf("begun %t, %v", begun, err)
	}
	w.says(injector, v1alpha1.EffectInconclusive, "16 MiB are left, and the fault has 1008 MiB; the server has not failed to write")
	w.Servers.At("10.0.0.1:6379").Answer("info", "$28\r\naof_last_write_status:err\r\n\r\n")
	w.says(injector, v1alpha1.EffectConfirmed, "the server could not write: aof_last_write_status:err")
	for range 2 {
		faulttest.Must(t, faulttest.Called(injector.Revert(t.Context(), w.hit)))
	}
	if w.holder("") != nil || len(w.volumes.Full(t.Context(), faulttest.Namespace)) > 0 {
		t.Error("something is left")
	}
	w.says(injector, v1alpha1.EffectNotObserved, "is gone, and its file with it")
}

// A volume whose program cannot be reached is free once its pod is gone, or its time is over.
func TestDiskFullThatIsNotReached(t *testing.T) {
	w := newFullWorld(t, nil, nil)
	injector := w.full(nil)
	faulttest.Must(t, injector.Preflight(t.Context(), w.hit))
	_, _ = injector.(contract.Preparer).Prepare(t.Context(), w.hit)
	w.holder(corev1.PodRunning)
	faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), w.hit)))
	w.hit.InjectedAt = &metav1.MicroTime{Time: time.Now()}
	w.holder(corev1.PodUnknown)
	w.Hooks.Delete = func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return nil } // as of a dead node
	progress, err := injector.Revert(t.Context(), w.hit)
	if err != nil || progress.Complete() {
		t.Errorf("it is reverted while the volume is full: %+v, %v", progress, err)
	}
	w.hit.InjectedAt = &metav1.MicroTime{Time: time.Now().Add(-41 * time.Second)}
	faulttest.Must(t, faulttest.Called(injector.Revert(t.Context(), w.hit)))
}

// What must not be filled is refused before anything is made.
func TestDiskFullPreflight(t *testing.T) {
	modes := func(mode corev1.PersistentVolumeAccessMode) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			c.Status.AccessModes = []corev1.PersistentVolumeAccessMode{mode}
		}
	}
	for name, tc := range map[string]struct {
		claim  func(*corev1.PersistentVolumeClaim)
		pod    func(*corev1.Pod)
		spec   func(*v1alpha1.RedisFaultSpec)
		server map[string]string
		says   string
		passes bool
	}{
		"an emptyDir": {
			pod:  func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "data"}} },
			says: "keeps its data in /data, which is no volume of a persistentVolumeClaim: filling it would fill the disk of node node-1",
		},
		"elsewhere":      {server: map[string]string{"dir": "/var/lib/redis"}, says: "keeps its data in /var/lib/redis"},
		"below":          {server: map[string]string{"dir": "/database"}, says: "keeps its data in /database"},
		"shared":         {claim: modes(corev1.ReadWriteMany), says: "claim data-redis-0 is ReadWriteMany"},
		"of one pod":     {claim: modes(corev1.ReadWriteOncePod), says: "no holder pod may use it beside Redis"},
		"nothing stored": {server: map[string]string{"appendonly": "no"}, says: "writes nothing to its disk"},
		"nothing to fill": {
			spec: func(s *v1alpha1.RedisFaultSpec) { s.Action.DiskFull.Leave = resource.MustParse("1Gi") },
			says: "spec.action.diskFull.leave is 1024 MiB, and claim data-redis-0 of pod redis-0 has 1024 MiB",
		},
		"not bound": {
			claim:  func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending },
			says:   "claim data-redis-0 is Pending",
			passes: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFullWorld(t, tc.claim, tc.pod)
			for setting, value := range tc.server {
				w.Servers.At("10.0.0.1:6379").Set(setting, value)
			}
			problem := faulttest.ProblemOf(t, w.full(tc.spec).Preflight(t.Context(), w.hit))
			if problem.Lasting == tc.passes || !strings.Contains(problem.Message, tc.says) || w.holder("") != nil {
				t.Errorf("%+v", problem)
			}
		})
	}
}

// What the program refuses is not filled, and what the namespace does not admit is not made.
func TestDiskFullRefused(t *testing.T) {
	w := newFullWorld(t, nil, nil)
	injector := w.full(nil)
	faulttest.Must(t, injector.Preflight(t.Context(), w.hit))
	_, _ = injector.(contract.Preparer).Prepare(t.Context(), w.hit)
	w.holder(corev1.PodRunning)
	w.volumes.Refused = "it is the folder /pvc-1 of a larger file system"
	_, err := injector.(contract.Preparer).Prepare(t.Context(), w.hit)
	problem := faulttest.ProblemOf(t, err)
	if !problem.Lasting || !strings.Contains(problem.Message, "the volume of claim data-redis-0 is not filled: it is the folder") {
		t.Errorf("%+v", problem)
	}
}

// The program has the rights on the server's folder that the server has, and no others.
func TestFillerHasTheUserOfTheServer(t *testing.T) {
	for name, tc := range map[string]struct {
		pod         *corev1.PodSecurityContext
		container   *corev1.SecurityContext
		user        int64
		nonRoot     bool
		mayOverride bool
	}{
		"a user of the pod": {&corev1.PodSecurityContext{RunAsUser: new(int64(999))}, nil, 999, true, false},
		"a user of the container": {
			&corev1.PodSecurityContext{RunAsUser: new(int64(0))},
			&corev1.SecurityContext{RunAsUser: new(int64(7))},
			7, true, false,
		},
		"whatever the image has":        {nil, nil, 0, false, true},
		"root":                          {&corev1.PodSecurityContext{RunAsUser: new(int64(0))}, nil, 0, false, true},
		"of the image, but not as root": {&corev1.PodSecurityContext{RunAsNonRoot: new(true)}, nil, holderUser, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			redis := corev1.Container{Name: "redis", SecurityContext: tc.container}
			pod := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: tc.pod, Containers: []corev1.Container{redis}}}
			container, security := diskFull{}.filler(pod, &redis)
			nonRoot := security.RunAsNonRoot != nil && *security.RunAsNonRoot
			if *security.RunAsUser != tc.user || nonRoot != tc.nonRoot || (len(container.SecurityContext.Capabilities.Add) > 0) != tc.mayOverride {
				t.Errorf("%+v, %+v", security, container.SecurityContext)
			}
		})
	}
}
