package volume

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// attachWorld is redis-0 on node-1 with a volume that is attached there, and a second node.
type attachWorld struct {
	*faulttest.World
	redis      *corev1.Pod
	claim      *corev1.PersistentVolumeClaim
	volume     *corev1.PersistentVolume
	attachment *storagev1.VolumeAttachment

	tolerations []corev1.Toleration // of the pod
}

func newAttachWorld(t *testing.T, change func(w *attachWorld)) *attachWorld {
	t.Helper()
	w := &attachWorld{
		World: faulttest.NewWorld(t),
		claim: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "data-redis-0"},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"},
			Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		},
		volume: &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv-1"},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				StorageClassName: "fast",
			},
		},
		attachment: &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: "csi-1"},
			Spec: storagev1.VolumeAttachmentSpec{
				NodeName: "node-1",
				Source:   storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv-1")},
			},
			Status: storagev1.VolumeAttachmentStatus{Attached: true},
		},
	}
	w.AddNode("node-1", nil)
	w.AddNode("node-2", nil)
	if change != nil {
		change(w)
	}
	for _, object := range []client.Object{w.claim, w.volume, w.attachment} {
		if err := w.Cluster.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	w.redis = w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) {
		p.Spec.Tolerations = w.tolerations
		p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(999)), FSGroup: new(int64(999))}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		p.Spec.Volumes = []corev1.Volume{
			{
				Name: "data",
				VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: w.claim.Name},
				},
			},
		}
	})
	return w
}

func holding(keepAway v1alpha1.KeepAway) *v1alpha1.RedisFaultSpec {
	return &v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{
			Type:              v1alpha1.FaultVolumeAttachDelay,
			VolumeAttachDelay: &v1alpha1.VolumeAttachDelay{KeepAway: keepAway},
		},
		Duration: &metav1.Duration{Duration: 20 * time.Second},
	}
}

// holder returns the holder pod, or nil.
func (w *attachWorld) holder() *corev1.Pod {
	w.T.Helper()
	var pods corev1.PodList
	if err := w.Cluster.List(context.Background(), &pods, client.MatchingLabels{v1alpha1.LabelFault: "lose"}); err != nil {
		w.T.Fatal(err)
	}
	if len(pods.Items) == 0 {
		return nil
	}
	return &pods.Items[0]
}

// run sets the phase of the holder, as the kubelet does.
func (w *attachWorld) run(phase corev1.PodPhase) {
	w.T.Helper()
	w.Update(w.holder(), func(p *corev1.Pod) { p.Status.Phase = phase })
}

// recordEvent creates an event, as the attach-detach controller does.
func (w *attachWorld) recordEvent(name, uid, reason, message string, at time.Time) {
	w.T.Helper()
	err := w.Cluster.Create(context.Background(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: name},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "redis-0", UID: types.UID(uid)},
		Reason:         reason,
		Message:        message,
		FirstTimestamp: metav1.NewTime(at),
	})
	if err != nil {
		w.T.Fatal(err)
	}
}

func (w *attachWorld) effect(
	injector contract.Injector, target *v1alpha1.FaultTarget, want v1alpha1.Effect, wantText string,
) {
	w.T.Helper()
	if got, evidence := injector.Effect(w.T.Context(), target); got != want || !strings.Contains(evidence, wantText) {
		w.T.Errorf("effect %s (%s), want %s about %q", got, evidence, want, wantText)
	}
}

func TestVolumeAttachDelay(t *testing.T) {
	w := newAttachWorld(t, nil)
	injector, targets := w.Aimed(Kinds, guard.Choose, holding(v1alpha1.KeepAwayTaint))
	target := &targets[0]
	w.effect(injector, target, v1alpha1.EffectNotObserved, "still runs")
	faulttest.MustPrepare(t, faulttest.Called(injector.Inject(t.Context(), target)), "node-1")
	faulttest.MustPrepare(t, faulttest.Called(injector.Inject(t.Context(), target)), "does not run yet")
	w.Tainted("node-1", "")
	w.run(corev1.PodRunning)
	faulttest.MustPrepare(t, faulttest.Called(injector.Inject(t.Context(), target)), "node node-1 is tainted")
	if begun, err := injector.Begun(t.Context(), target); begun || err != nil || len(w.Deleted) > 0 {
		t.Fatalf("begun %v (%v), deleted %v: nothing is broken before the kill", begun, err, w.Deleted)
	}
	for range 2 {
		if err := faulttest.Called(injector.Inject(t.Context(), target)); err != nil {
			t.Fatal(err)
		}
	}
	if begun, err := injector.Begun(t.Context(), target); !begun || err != nil || strings.Join(w.Deleted, " ") != "u0" {
		t.Errorf("begun %v (%v), deleted %v", begun, err, w.Deleted)
	}
	t0 := time.Now()
	target.InjectedAt = &metav1.MicroTime{Time: t0}

	w.effect(injector, target, v1alpha1.EffectInconclusive, "no replacement yet")
	next := w.Pod("redis-0", "u1", "", "", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending })
	w.effect(injector, target, v1alpha1.EffectInconclusive, "on no node")
	next.Spec.NodeName = "node-2"
	if err := w.Cluster.Update(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	w.effect(injector, target, v1alpha1.EffectConfirmed, "volume pv-1 is attached to node node-1 while pod redis-0 waits")
	message := `Multi-Attach error for volume "pv-1" Volume is already used by pod(s) lose-hold-1`
	w.recordEvent("other", "u0", "FailedAttachVolume", "Multi-Attach error for volume of another pod", t0)
	w.recordEvent("e1", "u1", "FailedAttachVolume", message, t0)
	w.effect(injector, target, v1alpha1.EffectConfirmed, message)

	for range 2 {
		if err := faulttest.Called(injector.Revert(t.Context(), target)); err != nil {
			t.Fatal(err)
		}
	}
	w.Tainted("node-1", "")
	if w.holder() != nil {
		t.Error("the holder is still there")
	}
	w.recordEvent("e2", "u1", "SuccessfulAttachVolume", `AttachVolume.Attach succeeded for volume "pv-1" `,
		t0.Add(25*time.Second))
	seen := injector.(contract.Follower).Follow(t.Context(), target)
	if len(seen) != 2 || seen[0].Event != contract.EventMultiAttach || seen[0].Message != message ||
		seen[1].Event != contract.EventAttached || !seen[1].Coarse {
		t.Errorf("sightings %+v", seen)
	}
	w.Update(next, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
	w.effect(injector, target, v1alpha1.EffectNotObserved, "its volume was not delayed")
}

// The holder is admitted by the restricted Pod Security Standard, ends without the operator, and writes nothing.
func TestHolder(t *testing.T) {
	w := newAttachWorld(t, nil)
	injector, targets := w.Aimed(Kinds, guard.Choose, holding(v1alpha1.KeepAwayNone))
	faulttest.MustPrepare(t, faulttest.Called(injector.Inject(t.Context(), &targets[0])), "")
	h := w.holder()
	if len(h.Name) != len("lose-hold-")+8 || !strings.HasPrefix(h.Name, "lose-hold-") || len(h.OwnerReferences) != 1 ||
		h.OwnerReferences[0].UID != "uid-lose" {
		t.Errorf("%s of %+v", h.Name, h.OwnerReferences)
	}
	if *h.Spec.ActiveDeadlineSeconds != 140 || !strings.Contains(h.Spec.Containers[0].Command[2], "sleep 140") {
		t.Errorf("active deadline %d s (%v), want 20 s and the margin of 2m", *h.Spec.ActiveDeadlineSeconds,
			h.Spec.Containers[0].Command)
	}
	if h.Spec.NodeName != "node-1" || *h.Spec.AutomountServiceAccountToken ||
		h.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("spec %+v", h.Spec)
	}
	s, c := h.Spec.SecurityContext, h.Spec.Containers[0]
	if !*s.RunAsNonRoot || *s.RunAsUser != 999 || s.FSGroup != nil ||
		s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("security %+v: want Redis's user, and no fsGroup: the kubelet would change the owner of the files", s)
	}
	if *c.SecurityContext.AllowPrivilegeEscalation || c.SecurityContext.Capabilities.Drop[0] != "ALL" ||
		!c.VolumeMounts[0].ReadOnly || c.Image != "redis:7" {
		t.Errorf("container %+v", c)
	}
	if claim := h.Spec.Volumes[0].PersistentVolumeClaim; claim.ClaimName != "data-redis-0" {
		t.Errorf("it mounts %s", claim.ClaimName)
	}
}

func TestVolumeAttachDelayWithoutTaint(t *testing.T) {
	// tolerates what there is not
	w := newAttachWorld(t, func(w *attachWorld) {
		w.tolerations = []corev1.Toleration{
			{Operator: corev1.TolerationOpExists},
		}
	})
	injector, targets := w.Aimed(Kinds, guard.Choose, holding(v1alpha1.KeepAwayNone))
	faulttest.MustPrepare(t, faulttest.Called(injector.Inject(t.Context(), &targets[0])), "")
	w.run(corev1.PodRunning)
	if err := faulttest.Called(injector.Inject(t.Context(), &targets[0])); err != nil {
		t.Fatal(err)
	}
	w.Tainted("node-1", "")
	targets[0].InjectedAt = &metav1.MicroTime{Time: time.Now()}
	w.Pod("redis-0", "u1", "10.0.0.5", "", nil)
	w.effect(injector, &targets[0], v1alpha1.EffectNotObserved, "was scheduled to node node-1 again")
	if by := injector.ManualRevertCommand(&targets[0]); !strings.Contains(by, "delete pod lose-hold-") ||
		strings.Contains(by, "untaint") {
		t.Errorf("manual command: %s", by)
	}
}

// noNodes is an API server that permits nothing on nodes.
type noNodes struct{ client.Reader }

func (n noNodes) Get(
	ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	if _, is := object.(*corev1.Node); is {
		return apierrors.NewForbidden(corev1.Resource("nodes"), key.Name, nil)
	}
	return n.Reader.Get(ctx, key, object, options...)
}

func (n noNodes) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, is := list.(*corev1.NodeList); is {
		return apierrors.NewForbidden(corev1.Resource("nodes"), "", nil)
	}
	return n.Reader.List(ctx, list, options...)
}

// Without a taint no right on nodes is needed. With one, it is an error that it is missing.
func TestVolumeAttachDelayWithoutRightsOnNodes(t *testing.T) {
	for keepAway, permitted := range map[v1alpha1.KeepAway]bool{
		v1alpha1.KeepAwayNone:  true,
		v1alpha1.KeepAwayTaint: false,
	} {
		w := newAttachWorld(t, nil)
		_, targets := w.Aimed(Kinds, guard.Choose, holding(keepAway))
		deps := w.Of("lose")
		deps.Live = noNodes{deps.Live}
		injector, err := Kinds.For(holding(keepAway), deps)
		if err != nil {
			t.Fatal(err)
		}
		if err := injector.Preflight(t.Context(), &targets[0]); (err == nil) != permitted {
			t.Errorf("%s: preflight: %v", keepAway, err)
		}
		if err := faulttest.Called(injector.Revert(t.Context(), &targets[0])); (err == nil) != permitted {
			t.Errorf("%s: revert: %v", keepAway, err)
		}
	}
}

func TestVolumeAttachDelayRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change   func(*attachWorld)
		wantText string
	}{
		"many":      {func(w *attachWorld) { w.volume.Spec.AccessModes[0] = corev1.ReadWriteMany }, "ReadWriteMany"},
		"one pod":   {func(w *attachWorld) { w.volume.Spec.AccessModes[0] = corev1.ReadWriteOncePod }, "ReadWriteOncePod"},
		"not bound": {func(w *attachWorld) { w.claim.Status.Phase = corev1.ClaimPending }, "data-redis-0 is Pending"},
		"no volume": {func(w *attachWorld) { w.volume.Name = "another" }, "pv-1, which does not exist"},
		"no claim":  {func(w *attachWorld) { w.claim.Namespace = "elsewhere" }, "data-redis-0 does not exist"},
		"not by CSI": {
			func(w *attachWorld) { w.attachment.Spec.NodeName = "node-2" },
			`storage class "fast" attaches nothing`,
		},
		"one node": {func(w *attachWorld) { w.addTaint("node-2") }, "node-2 has the taint broken"},
		"tolerant": {func(w *attachWorld) {
			w.tolerations = []corev1.Toleration{
				{Operator: corev1.TolerationOpExists},
			}
		}, "redis-0 tolerates the taint redquake.dev/fault"},
		"local class": {func(w *attachWorld) { w.bindTo("node-1") }, "cannot reach volume pv-1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAttachWorld(t, tc.change)
			injector, err := Kinds.For(holding(v1alpha1.KeepAwayTaint), w.Of("lose"))
			if err != nil {
				t.Fatal(err)
			}
			problem := faulttest.ProblemOf(t,
				injector.Preflight(t.Context(), &v1alpha1.FaultTarget{
					Pod:       "redis-0",
					UID:       "u0",
					Node:      "node-1",
					Container: "redis",
				}))
			passes := tc.wantText == "data-redis-0 is Pending"
			if problem.Reason == v1alpha1.ReasonNotSupported == passes || problem.Lasting == passes ||
				!strings.Contains(problem.Message, tc.wantText) {
				t.Errorf("%+v, want one about %q", problem, tc.wantText)
			}
		})
	}
}

func (w *attachWorld) addTaint(name string) {
	node := w.ReadNode(name)
	node.Spec.Taints = []corev1.Taint{{Key: "broken", Effect: corev1.TaintEffectNoExecute}}
	if err := w.Cluster.Update(w.T.Context(), node); err != nil {
		w.T.Fatal(err)
	}
}

func (w *attachWorld) bindTo(node string) {
	w.volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{
		Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
			},
		}}},
	}
}

func TestVolumeAttachDelayWithoutVolume(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.AddNode("node-2", nil)
	w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{
			{Name: "scratch"},
		}
	})
	injector, err := Kinds.For(holding(v1alpha1.KeepAwayTaint), w.Of("lose"))
	if err != nil {
		t.Fatal(err)
	}
	if problem := faulttest.ProblemOf(t,
		injector.Preflight(t.Context(), &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0", Node: "node-1"})); !strings.Contains(
		problem.Message, "no volume of a persistentVolumeClaim") {
		t.Errorf("%+v", problem)
	}
}

// If the holder has a problem, Redis is not killed.
func TestHolderErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		trouble  func(w *attachWorld)
		wantText string
	}{
		"ended": {func(w *attachWorld) {
			w.Update(w.holder(), func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodFailed
				p.Status.ContainerStatuses = []corev1.ContainerStatus{
					{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "StartError", ExitCode: 128}}},
				}
			})
		}, "StartError, exit code 128"},
		"late": {func(w *attachWorld) {
			w.Update(w.holder(), func(p *corev1.Pod) {
				began := metav1.NewTime(time.Now().Add(-90 * time.Second))
				p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &began
				p.Status.ContainerStatuses = []corev1.ContainerStatus{
					{Name: "injected"},
					{Name: holderContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}},
				}
			})
		}, "to start"},
		"another's": {func(w *attachWorld) {
			h := w.holder()
			h.OwnerReferences = nil
			if err := w.Cluster.Update(context.Background(), h); err != nil {
				w.T.Fatal(err)
			}
		}, "is not this fault's"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAttachWorld(t, nil)
			injector, targets := w.Aimed(Kinds, guard.Choose, holding(v1alpha1.KeepAwayTaint))
			faulttest.MustPrepare(t, faulttest.Called(injector.Inject(t.Context(), &targets[0])), "")
			tc.trouble(w)
			if err := faulttest.Called(injector.Inject(t.Context(), &targets[0])); err == nil ||
				!strings.Contains(err.Error(), tc.wantText) {
				t.Errorf("inject: %v, want %q", err, tc.wantText)
			}
			if err := faulttest.Called(injector.Revert(t.Context(), &targets[0])); err != nil {
				t.Errorf("revert: %v", err)
			}
			if left := w.holder(); (left != nil) != (name == "another's") {
				t.Errorf("after the revert the holder is %v, want only our own one deleted", left)
			}
			if err := w.Cluster.Get(t.Context(), client.ObjectKeyFromObject(w.redis), &corev1.Pod{}); err != nil {
				t.Errorf("Redis: %v", err)
			}
			w.Tainted("node-1", "")
		})
	}
}

// A revert between any two steps, or before the first, restores the state; a Redis that was not killed yet keeps
// running.
func TestVolumeAttachDelayRevertedHalfway(t *testing.T) {
	for steps := range 4 {
		w := newAttachWorld(t, nil)
		injector, targets := w.Aimed(Kinds, guard.Choose, holding(v1alpha1.KeepAwayTaint))
		for range steps {
			_ = faulttest.Called(injector.Inject(t.Context(), &targets[0]))
			if w.holder() != nil {
				w.run(corev1.PodRunning)
			}
		}
		// Another process continues: it has only the record.
		again, err := Kinds.For(holding(v1alpha1.KeepAwayTaint), w.Of("lose"))
		if err != nil {
			t.Fatal(err)
		}
		if err := faulttest.Called(again.Revert(t.Context(), &targets[0])); err != nil {
			t.Errorf("after %d steps: %v", steps, err)
		}
		if w.holder() != nil {
			t.Errorf("after %d steps the holder is still there", steps)
		}
		w.Tainted("node-1", "")
		err = w.Cluster.Get(t.Context(), client.ObjectKeyFromObject(w.redis), &corev1.Pod{})
		if killed := apierrors.IsNotFound(err); killed != (steps == 3) {
			t.Errorf("after %d steps Redis is killed: %v", steps, killed)
		}
	}
}

func TestVolumeAttachDelayIgnoresReplacements(t *testing.T) {
	w := newAttachWorld(t, nil)
	injector, targets := w.Aimed(Kinds, guard.Choose, holding(v1alpha1.KeepAwayTaint))
	w.Replace(w.redis, "another")
	if err := faulttest.Called(injector.Inject(t.Context(), &targets[0])); err != nil {
		t.Fatal(err)
	}
	if w.holder() != nil || len(w.Deleted) > 0 {
		t.Errorf("holder %v, deleted %v, want neither: the recorded pod was replaced", w.holder(), w.Deleted)
	}
	w.Tainted("node-1", "")
}

// Where the namespace assigns users, the holder asks only for the one of the target's pod.
func TestHolderInANamespaceThatAssignsUserIDs(t *testing.T) {
	for name, user := range map[string]*int64{"none": nil, "the target's": new(int64(1000680000))} {
		t.Run(name, func(t *testing.T) {
			w := newAttachWorld(t, nil)
			if err := w.Cluster.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: faulttest.Namespace, Annotations: map[string]string{"openshift.io/sa.scc.uid-range": "1000680000/10000"},
			}}); err != nil {
				t.Fatal(err)
			}
			w.redis.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: user}
			if err := w.Cluster.Update(t.Context(), w.redis); err != nil {
				t.Fatal(err)
			}
			injector, targets := w.Aimed(Kinds, guard.Choose, holding(v1alpha1.KeepAwayTaint))
			faulttest.MustPrepare(t, faulttest.Called(injector.Inject(t.Context(), &targets[0])), "")
			holder := w.holder()
			if s := holder.Spec.SecurityContext; !ptr.Equal(s.RunAsUser, user) || s.RunAsGroup != nil || !*s.RunAsNonRoot {
				t.Errorf("security context %+v, want user %v", s, user)
			}
			if holder.Annotations["sidecar.istio.io/inject"] != "false" {
				t.Errorf("annotations %v: a sidecar may be injected", holder.Annotations)
			}
		})
	}
}

// The attach-detach controller says in other words that a volume is attached elsewhere since Kubernetes 1.37.
func TestWordsOfMultiAttach(t *testing.T) {
	const volume = ` for volume "pv-1" Volume is already used by pod(s) lose-hold-1`
	for _, c := range []struct {
		reason, message string
		is              bool
	}{
		{"FailedAttachVolume", "Multi-Attach error" + volume, true},
		{"FailedAttachVolume", "Waiting for detach" + volume, true},
		{"FailedAttachVolume", `AttachVolume.Attach failed for volume "pv-1" : rpc error`, false},
		{"FailedMount", "Multi-Attach error" + volume, false},
	} {
		got := multiAttach([]corev1.Event{{Reason: "Scheduled"}, {Reason: c.reason, Message: c.message}})
		if (got != nil) != c.is || c.is && got.Message != c.message {
			t.Errorf("%s %s: %+v", c.reason, c.message, got)
		}
	}
}
