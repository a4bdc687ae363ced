package podtemplate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/roll"
	"github.com/redquake/redquake/internal/target"
)

// Effect is confirmed where the template has what the fault has set, and the pod is of the revision
// that has it.
func (p podTemplate) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	record, _, err := contract.Load[templateRecord](target)
	if err != nil {
		return contract.Unseen(err)
	}
	set, err := roll.Recorded(ctx, p.Deps, record.StatefulSet, record.UID)
	switch {
	case err != nil:
		return contract.Unseen(err)
	case set == nil:
		return contract.NotObserved("StatefulSet %s was deleted", record.StatefulSet)
	}
	effect, why := p.inTemplate(set, record)
	if effect != v1alpha1.EffectConfirmed {
		return effect, why
	}
	pod, err := p.Pod(ctx, target.Pod)
	switch {
	case apierrors.IsNotFound(err), err == nil && pod.DeletionTimestamp != nil:
		return contract.Inconclusive("pod %s is being replaced", target.Pod)
	case err != nil:
		return contract.Unseen(err)
	}
	revision := pod.Labels[appsv1.StatefulSetRevisionLabel]
	if revision != record.New && revision != set.Status.UpdateRevision {
		return contract.NotObserved(
			"pod %s is of revision %s, not of %s, which has the changed template", target.Pod, revision,
			set.Status.UpdateRevision)
	}
	if len(record.Fields) == 0 {
		return contract.Confirmed(
			"pod %s is of revision %s, whose template had all that the patch sets before", target.Pod,
			revision)
	}
	return contract.Confirmed("pod %s is of revision %s, with the changed %s",
		target.Pod, revision, inWords(record.Fields))
}

// inTemplate is whether the template of the StatefulSet has what the patch sets.
func (p podTemplate) inTemplate(
	set *appsv1.StatefulSet, record templateRecord,
) (v1alpha1.Effect, string) {
	if len(record.Fields) == 0 {
		if !p.holds(&set.Spec.Template) {
			return contract.NotObserved(
				"somebody else changed the template of StatefulSet %s, which had all that the patch sets before",
				set.Name)
		}
		return v1alpha1.EffectConfirmed, ""
	}
	w, marked, err := wayOf(set, string(p.Owner.UID))
	switch {
	case err != nil:
		return contract.Unseen(err)
	case !marked:
		return contract.NotObserved(
			"StatefulSet %s has no annotation %s: its template is not that of the fault", set.Name,
			v1alpha1.AnnotationChangedPodTemplate)
	}
	lost, err := w.lost(&set.Spec.Template)
	switch {
	case err != nil:
		return contract.Unseen(err)
	case len(lost) > 0:
		return contract.NotObserved(
			"%s in the template of StatefulSet %s is not what the fault had set", inWords(lost), set.Name)
	}
	return v1alpha1.EffectConfirmed, ""
}

func (p podTemplate) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(record templateRecord) contract.Description {
		if len(record.Fields) == 0 {
			return contract.Description{
				Action: fmt.Sprintf(
					"nothing: the template of StatefulSet %s has all that the patch sets already",
					record.StatefulSet),
			}
		}
		return contract.Description{
			Action: fmt.Sprintf(
				"change %s in the template of StatefulSet %s, and replace its pods one by one, replicas first",
				inWords(record.Fields), record.StatefulSet),
			Revert: fmt.Sprintf("put these fields back, from its annotation %s, and replace the pods",
				v1alpha1.AnnotationFormerPodTemplate),
		}
	})
}

// ManualRevertCommand puts the template back as it was, whatever others have changed meanwhile. The
// StatefulSet's controller rolls the pods then, unless the strategy is OnDelete.
func (p podTemplate) ManualRevertCommand(of *v1alpha1.FaultTarget) string {
	record, recorded, err := contract.Load[templateRecord](of)
	if err != nil || !recorded || len(record.Fields) == 0 {
		return ""
	}
	strategy, err := json.Marshal(record.Strategy)
	if err != nil {
		return ""
	}
	escaped := strings.ReplaceAll(v1alpha1.AnnotationFormerPodTemplate, ".", `\.`)
	read := fmt.Sprintf(`kubectl -n %s get statefulset %s -o jsonpath='{.metadata.annotations.%s}'`,
		p.Namespace, record.StatefulSet, escaped)
	quote := target.ShellWord
	command := fmt.Sprintf(`kubectl -n %s patch statefulset %s --type json -p %s"$(%s)"%s`,
		p.Namespace, record.StatefulSet,
		quote(`[{"op":"replace","path":"/spec/template","value":`), read,
		quote(
			fmt.Sprintf(
				`},{"op":"replace","path":"/spec/updateStrategy","value":%s},`+
					`{"op":"remove","path":"/metadata/annotations/%s"},{"op":"remove","path":"/metadata/annotations/%s"}]`,
				strategy, pointer(v1alpha1.AnnotationFormerPodTemplate),
				pointer(v1alpha1.AnnotationChangedPodTemplate))))
	if record.Strategy.Type == roll.OnDelete.Type {
		command += "; then delete its pods one by one, replicas first"
	}
	return command
}

// pointer is a name within a JSON pointer.
func pointer(name string) string {
	return strings.ReplaceAll(name, "/", "~1")
}

// Warnings implements contract.Warner.
func (p podTemplate) Warnings(target *v1alpha1.FaultTarget) []string {
	record, _, err := contract.Load[templateRecord](target)
	if err != nil || len(record.Kept) == 0 {
		return nil
	}
	return []string{
		fmt.Sprintf(
			"somebody else changed %s in the template of StatefulSet %s while the fault acted: the revert "+
				"leaves that as it is", inWords(record.Kept), record.StatefulSet),
	}
}
