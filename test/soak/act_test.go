//go:build e2e

package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
)

// actLimit is how long an event is tried. It is far longer than the API server is away.
const actLimit = 3 * time.Minute

// errNothing is that there is nothing that an event could be done to: its object has ended and is gone, or no load pod
// runs.
var errNothing = errors.New("nothing to do it to")

// do carries out an event, and notes when it was accepted and taken back.
func (s *soak) do(ctx context.Context, e Event) {
	done := Done{Event: e}
	err := s.act(ctx, &done)
	if err != nil && !errors.Is(err, errNothing) {
		done.Err = err.Error()
	}
	s.locked(func() { s.facts.Events = append(s.facts.Events, done) })
	s.Logf("%s %s/%s %s %s", e.Label(), e.World, e.Name, done.Target, done.Err)
}

func (s *soak) act(ctx context.Context, done *Done) error {
	e := done.Event
	switch e.Kind {
	case CreateLoadTest, CreateFault, CreateExperiment:
		e.Object.SetNamespace(s.world(e.World).namespace)
		return s.accepted(ctx, done, func(ctx context.Context) error {
			err := s.Create(ctx, e.Object)
			if apierrors.IsAlreadyExists(err) { // the answer to an earlier try was lost
				return nil
			}
			return err
		})
	case Abort:
		return s.accepted(ctx, done, func(ctx context.Context) error {
			return s.patch(ctx, s.object(e),
				`{"spec":{"abort":true}}`)
		})
	case Delete:
		return s.accepted(ctx, done, func(ctx context.Context) error { return s.Delete(ctx, s.object(e)) })
	case Suspend:
		return s.forTime(ctx, done, s.object(e), `{"spec":{"suspend":true}}`, `{"spec":{"suspend":false}}`)
	case Stop:
		annotation := func(value string) string {
			return fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, v1alpha1.AnnotationStop, value)
		}
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.world(e.World).namespace}}
		return s.forTime(ctx, done, ns, annotation(`"true"`), annotation("null"))
	case LeaseTaken:
		return s.takeLease(ctx, done)
	case LoadPodDeleted:
		return s.accepted(ctx, done, func(ctx context.Context) error { return s.deleteLoadPod(ctx, done) })
	case ManagerPodDeleted:
		pod, err := s.manager()
		if err != nil {
			return err
		}
		done.Target = pod.Name
		if err := s.accepted(ctx, done, func(ctx context.Context) error {
			return s.Delete(ctx, pod,
				client.GracePeriodSeconds(0))
		}); err != nil {
			return err
		}
		return s.leads(ctx, done)
	default:
		return s.disturb(ctx, done)
	}
}

func (s *soak) world(name string) *world {
	for _, w := range s.worlds {
		if w.Name == name {
			return w
		}
	}
	panic("there is no world " + name)
}

// object is the object that an event is about, by its name.
func (s *soak) object(e Event) client.Object {
	meta := metav1.ObjectMeta{Namespace: s.world(e.World).namespace, Name: e.Name}
	switch {
	case strings.HasPrefix(e.Name, "load-"):
		return &v1alpha1.RedisLoadTest{ObjectMeta: meta}
	case strings.HasPrefix(e.Name, "experiment-"):
		return &v1alpha1.RedisExperiment{ObjectMeta: meta}
	}
	return &v1alpha1.RedisFault{ObjectMeta: meta}
}

func (s *soak) patch(ctx context.Context, object client.Object, merge string) error {
	return s.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(merge)))
}

// accepted tries until the API server has accepted it, and notes when.
func (s *soak) accepted(ctx context.Context, done *Done, try func(context.Context) error) error {
	err := s.retried(ctx, try)
	if err == nil {
		done.Began = time.Now()
	}
	return err
}

// retried tries until the API server has accepted it. A refusal is not tried again.
func (s *soak) retried(ctx context.Context, try func(context.Context) error) error {
	var final error
	err := await.Try(ctx, actLimit, func() error {
		limited, cancel := context.WithTimeout(ctx, requestLimit)
		defer cancel()
		err := try(limited)
		switch {
		case apierrors.IsNotFound(err):
			final = errNothing
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err), errors.Is(err, errNothing):
			final = err
		default:
			return err
		}
		return nil
	})
	return errors.Join(err, final)
}

// forTime patches an object, and patches it back after a while.
func (s *soak) forTime(ctx context.Context, done *Done, object client.Object, set, unset string) error {
	if err := s.accepted(ctx, done, func(ctx context.Context) error { return s.patch(ctx, object, set) }); err != nil {
		return err
	}
	await.PassTo(done.Began.Add(done.For), "the plan")
	err := s.retried(ctx, func(ctx context.Context) error { return s.patch(ctx, object, unset) })
	done.Ended = time.Now()
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// takeLease makes somebody else the holder, who does not renew it, and gives it back.
func (s *soak) takeLease(ctx context.Context, done *Done) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: leaseName}}
	take := func(ctx context.Context) error {
		// Nobody else may take it before its end, nor has to give it back.
		return s.patch(ctx, lease,
			fmt.Sprintf(`{"spec":{"holderIdentity":"soak","leaseDurationSeconds":%d,"renewTime":%q}}`, int(done.For.Seconds())+1,
				time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00")))
	}
	if err := s.accepted(ctx, done, take); err != nil {
		return err
	}
	await.PassTo(done.Began.Add(done.For), "the plan")
	err := s.retried(ctx, func(ctx context.Context) error {
		if err := s.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
			return err
		}
		if *lease.Spec.HolderIdentity != "soak" {
			return nil
		}
		return s.patch(ctx, lease,
			fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"holderIdentity":""}}`, lease.ResourceVersion))
	})
	if err != nil {
		return err
	}
	return s.leads(ctx, done)
}

// leads waits until a manager leads, and notes when: from then on the event is over.
func (s *soak) leads(ctx context.Context, done *Done) error {
	return await.Try(ctx, actLimit, func() (err error) {
		s.locked(func() {
			if n := len(s.facts.Able); n == 0 || !s.facts.Able[n-1].OK ||
				!s.facts.Able[n-1].At.After(done.Began.Add(freshness)) {
				err = errors.New("no manager renews the Lease")
				return
			}
			done.Ended = s.facts.Able[len(s.facts.Able)-1].At
		})
		return err
	})
}

// deleteLoadPod deletes a load pod that runs, if possible one of the event's world.
func (s *soak) deleteLoadPod(ctx context.Context, done *Done) error {
	for _, w := range append([]*world{s.world(done.World)}, s.worlds...) {
		var pods corev1.PodList
		if err := s.List(ctx, &pods, client.InNamespace(w.namespace), client.HasLabels{v1alpha1.LabelLoadTest}); err != nil {
			return err
		}
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				done.Target = pod.Name
				return s.Delete(ctx, pod, client.GracePeriodSeconds(0))
			}
		}
	}
	return errNothing
}

// manager is the pod of the operator that was seen last.
func (s *soak) manager() (pod *corev1.Pod, err error) {
	err = await.Try(s.Context(), actLimit, func() error {
		s.locked(func() {
			for _, p := range s.seen.managers {
				if p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning && len(p.Status.ContainerStatuses) > 0 &&
					p.Status.ContainerStatuses[0].State.Running != nil {
					pod = p.DeepCopy()
				}
			}
		})
		return await.That(pod != nil, "no manager runs")
	})
	return pod, err
}

// disturb does what only the machine can.
func (s *soak) disturb(ctx context.Context, done *Done) error {
	length := done.For.String()
	switch done.Kind {
	case ManagerKilled, ManagerPaused:
		pod, err := s.manager()
		if err != nil {
			return err
		}
		done.Target = pod.Name
		if done.Kind == ManagerKilled {
			if err := s.inLab(ctx, done, "pod", "kill", system, pod.Name); err != nil {
				return err
			}
			return s.leads(ctx, done)
		}
		return s.inLab(ctx, done, "pod", "freeze", system, pod.Name, "--for", length)
	case APIServerPaused:
		return s.inLab(ctx, done, "daemon", "pause", "kube-apiserver", "--for", length)
	case EtcdPaused:
		return s.inLab(ctx, done, "daemon", "pause", "etcd", "--for", length)
	case KubeletPaused:
		return s.inLab(ctx, done, "node", "pause", done.Name, "kubelet", "--for", length)
	case NodeSlowed:
		return s.inLab(ctx, done, "node", "burden", done.Name, "--for", length)
	}
	return fmt.Errorf("nobody knows how to do %q", done.Kind)
}

// inLab calls the lab's program, which undoes what it has done also if this test is killed meanwhile. A pod may be
// gone, or the API server away, when it looks for it.
func (s *soak) inLab(ctx context.Context, done *Done, args ...string) error {
	return await.Try(ctx, actLimit, func() error {
		var out bytes.Buffer
		cmd := exec.Command(s.lab, args...)
		cmd.Stderr = &out
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		began := time.Now()
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("lab %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(out.String()))
		}
		done.Began, done.Ended = began, time.Now()
		return nil
	})
}
