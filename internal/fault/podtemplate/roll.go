package podtemplate

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/roll"
)

// Inject stores both templates in annotations of the StatefulSet, then writes the new one, and then
// replaces the pods. It is called for every target of one StatefulSet, and continues where the last
// call ended.
func (p podTemplate) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	record, recorded, err := contract.Load[templateRecord](target)
	switch {
	case err != nil:
		return contract.Progress{}, err
	case !recorded:
		return contract.Progress{}, fmt.Errorf("pod %s has no record of its template", target.Pod)
	case len(record.Fields) == 0:
		return contract.Progress{}, nil
	}
	set, err := roll.Recorded(ctx, p.Deps, record.StatefulSet, record.UID)
	if err != nil || set == nil {
		return contract.Progress{}, err
	}
	w, marked, err := wayOf(set, string(p.Owner.UID))
	switch {
	case err != nil:
		return contract.Progress{}, err
	case !marked:
		return p.mark(ctx, target, set, record)
	}
	lost, err := w.lost(&set.Spec.Template)
	switch {
	case err != nil:
		return contract.Progress{}, err
	case len(lost) == 0:
		return p.rollOut(ctx, target, set, record)
	case target.InjectedAt != nil || !apiequality.Semantic.DeepEqual(set.Spec.Template, w.former):
		return contract.Progress{}, fmt.Errorf(
			"somebody else changed %s in the template of StatefulSet %s: the fault changes nothing more",
			inWords(lost), set.Name)
	}
	if err := p.write(ctx, set, func(s *appsv1.StatefulSet) {
		s.Spec.Template, s.Spec.UpdateStrategy = w.changed, roll.OnDelete
	}); err != nil {
		return contract.Progress{}, err
	}
	return contract.Underway("the template of StatefulSet %s is changed, no pod is replaced yet",
		set.Name), nil
}

// mark stores the way back at the StatefulSet, which changes nothing of its pods. It does nothing
// if the pod of the target is gone: nobody replaces that later.
func (p podTemplate) mark(
	ctx context.Context, target *v1alpha1.FaultTarget, set *appsv1.StatefulSet, record templateRecord,
) (contract.Progress, error) {
	// The name of a revision is made of the template. What was changed since the record, also by this
	// fault, is not the former template.
	if target.InjectedAt != nil || set.Status.UpdateRevision != record.Revision ||
		set.Status.ObservedGeneration < set.Generation {
		return contract.Progress{}, fmt.Errorf(
			"the template of StatefulSet %s was changed since the fault was recorded, or the annotation "+
				"%s was removed from it: nothing more is changed",
			set.Name, v1alpha1.AnnotationFormerPodTemplate)
	}
	pod, err := p.Pod(ctx, target.Pod)
	if apierrors.IsNotFound(err) || err == nil && string(pod.UID) != target.UID {
		return contract.Progress{}, nil
	} else if err != nil {
		return contract.Progress{}, err
	}
	changed, err := p.patched(&set.Spec.Template)
	if err != nil {
		return contract.Progress{}, err
	}
	if changed, err = p.rehearse(ctx, set, changed); err != nil {
		return contract.Progress{}, err
	}
	annotations, err := way{
		former:  set.Spec.Template,
		changed: changed,
	}.annotations(string(p.Owner.UID))
	if err != nil {
		return contract.Progress{}, err
	}
	err = p.write(ctx, set, func(s *appsv1.StatefulSet) {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		for key, value := range annotations {
			s.Annotations[key] = value
		}
	})
	return contract.Preparing("the template of StatefulSet %s is stored, and not changed yet",
		set.Name), err
}

func (p podTemplate) rollOut(
	ctx context.Context, target *v1alpha1.FaultTarget, set *appsv1.StatefulSet, record templateRecord,
) (contract.Progress, error) {
	progress, err := roll.Retried(roll.Roller{Deps: p.Deps}.Advance(ctx, set))
	if err != nil || !progress.Complete() {
		return progress, err
	}
	record.New = set.Status.UpdateRevision
	return progress, contract.Save(target, record)
}

// Revert puts back what the fault has changed of the template, replaces the pods again, and finally
// restores the strategy and removes the annotations.
func (p podTemplate) Revert(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	record, recorded, err := contract.Load[templateRecord](target)
	if err != nil || !recorded || len(record.Fields) == 0 {
		return contract.Progress{}, err
	}
	set, err := roll.Recorded(ctx, p.Deps, record.StatefulSet, record.UID)
	if err != nil || set == nil {
		return roll.Retried(contract.Progress{}, err)
	}
	w, marked, err := wayOf(set, string(p.Owner.UID))
	switch {
	case err != nil:
		return contract.Progress{}, err
	case !marked:
		return contract.Progress{}, p.unmarked(set, record)
	}
	template, kept, err := w.back(&set.Spec.Template)
	if err != nil {
		return contract.Progress{}, err
	}
	if !slices.Equal(kept, record.Kept) {
		record.Kept = kept
		if err := contract.Save(target, record); err != nil {
			return contract.Progress{}, err
		}
	}
	if !apiequality.Semantic.DeepEqual(template, set.Spec.Template) {
		err := p.write(ctx, set, func(s *appsv1.StatefulSet) {
			s.Spec.Template, s.Spec.UpdateStrategy = template, roll.OnDelete
		})
		return roll.Retried(contract.Underway(
			"the template of StatefulSet %s is restored, its pods are not replaced yet", set.Name), err)
	}
	return p.rollBack(ctx, set, record)
}

// Leave implements contract.Leaver: the StatefulSet's own controller replaces the pods.
func (p podTemplate) Leave(ctx context.Context, target *v1alpha1.FaultTarget) error {
	record, recorded, err := contract.Load[templateRecord](target)
	if err != nil || !recorded || len(record.Fields) == 0 {
		return err
	}
	set, err := roll.Recorded(ctx, p.Deps, record.StatefulSet, record.UID)
	if err != nil || set == nil {
		return err
	}
	w, marked, err := wayOf(set, string(p.Owner.UID))
	if err != nil || !marked {
		return err
	}
	template, _, err := w.back(&set.Spec.Template)
	if err != nil {
		return err
	}
	return p.write(ctx, set, func(s *appsv1.StatefulSet) {
		s.Spec.Template = template
		p.release(s, record)
	})
}

// release gives a StatefulSet back to its own controller.
func (podTemplate) release(set *appsv1.StatefulSet, record templateRecord) {
	if set.Spec.UpdateStrategy.Type == roll.OnDelete.Type {
		set.Spec.UpdateStrategy = record.Strategy
	}
	delete(set.Annotations, v1alpha1.AnnotationFormerPodTemplate)
	delete(set.Annotations, v1alpha1.AnnotationChangedPodTemplate)
}

func (p podTemplate) rollBack(
	ctx context.Context, set *appsv1.StatefulSet, record templateRecord,
) (contract.Progress, error) {
	r := roll.Roller{Deps: p.Deps}
	stale, err := r.Stale(ctx, set)
	if err != nil {
		return roll.Retried(contract.Progress{}, err)
	}
	// somebody else has set it meanwhile: its controller would replace pods as well
	if stale && set.Spec.UpdateStrategy.Type != roll.OnDelete.Type {
		err := p.write(ctx, set, func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy = roll.OnDelete })
		return roll.Retried(contract.Underway("StatefulSet %s gets the strategy OnDelete", set.Name), err)
	}
	progress, err := roll.Retried(r.Advance(ctx, set))
	if err != nil || !progress.Complete() {
		return progress, err
	}
	return roll.Retried(contract.Progress{},
		p.write(ctx, set, func(s *appsv1.StatefulSet) { p.release(s, record) }))
}

// holds reports whether a template has all that the patch sets. If that cannot be merged into it
// any more, it has not.
func (p podTemplate) holds(template *corev1.PodTemplateSpec) bool {
	again, err := p.patched(template)
	return err == nil && apiequality.Semantic.DeepEqual(again, *template)
}

// unmarked is nil where the fault has not begun, or is reverted, and an error where somebody else
// has removed the annotations meanwhile.
func (p podTemplate) unmarked(set *appsv1.StatefulSet, record templateRecord) error {
	if !p.holds(&set.Spec.Template) &&
		(set.Spec.UpdateStrategy.Type != roll.OnDelete.Type ||
			record.Strategy.Type == roll.OnDelete.Type) {
		return nil
	}
	return fmt.Errorf(
		"somebody else removed the annotation %s of StatefulSet %s, by which the template is put back "+
			"(its revision was %s). %s, and set its updateStrategy to %s",
		v1alpha1.AnnotationFormerPodTemplate, set.Name, record.Revision, byHand(set),
		record.Strategy.Type)
}
