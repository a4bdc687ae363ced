// Package podtemplate implements the fault PodTemplate.
package podtemplate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/owner"
	"github.com/redquake/redquake/internal/fault/roll"
	"github.com/redquake/redquake/internal/problem"
)

// Kinds are the faults of pod templates.
var Kinds = contract.Kinds{
	v1alpha1.FaultPodTemplate: newPodTemplate,
}

// field is the patch as users know it.
const field = "spec.action.podTemplate.patch"

// podTemplate changes the template of a StatefulSet by a strategic merge patch, and rolls its pods.
// Values of a template may be passwords: the record in the status has only the names of the fields.
// The former template is an annotation of the StatefulSet, which has had these values anyway.
type podTemplate struct {
	contract.Deps
	patch []byte // of the template, as JSON
	lasts time.Duration
	// setting means that a load runs with the template, whether it was another one before or not.
	setting bool
}

// templateRecord is the record of a target.
type templateRecord struct {
	StatefulSet string                           `json:"statefulSet"`
	UID         string                           `json:"uid"`
	Strategy    appsv1.StatefulSetUpdateStrategy `json:"strategy"` // before
	Revision    string                           `json:"revision"` // of the former template
	// that the fault changes; none = the template has them already
	Fields []string `json:"fields"`
	// the revision of all pods once they are replaced
	New string `json:"new,omitempty"`
	// fields that somebody else changed meanwhile, which the revert leaves
	Kept []string `json:"kept,omitempty"`
}

func newPodTemplate(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	p := podTemplate{
		Deps:    deps,
		lasts:   spec.Stays(),
		setting: spec.Setting,
	}
	if s := spec.Action.PodTemplate; s != nil {
		p.patch, _ = json.Marshal(s.Patch) // what could be decoded can be encoded
	}
	return p
}

func (p podTemplate) Traits() contract.Traits {
	return contract.Traits{
		Lasts:     p.lasts,
		Step:      roll.Step,
		RollsPods: true,
		Whole:     true,
	}
}

func (p podTemplate) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	set, err := roll.SetOf(ctx, p.Deps, target, "a template is changed and its pods are replaced",
		(*owner.Owner).Template)
	if err != nil {
		return err
	}
	_, marked := set.Annotations[v1alpha1.AnnotationFormerPodTemplate]
	if marked {
		return problem.Unsupported(
			"StatefulSet %s has the annotation %s of an earlier fault that was not reverted: put that template back, then remove the annotation",
			set.Name, v1alpha1.AnnotationFormerPodTemplate)
	}
	changed, err := p.patched(&set.Spec.Template)
	if err != nil {
		return err
	}
	err = p.permitted(set, &changed, target.Container)
	if err != nil {
		return err
	}
	after, err := p.rehearse(ctx, set, changed)
	if err != nil {
		return err
	}
	w := way{former: set.Spec.Template, changed: after}
	record := templateRecord{
		StatefulSet: set.Name,
		UID:         string(set.UID),
		Strategy:    set.Spec.UpdateStrategy,
		Revision:    set.Status.UpdateRevision,
	}
	if record.Fields, err = w.fields(); err != nil {
		return err
	}
	if len(record.Fields) == 0 && !p.setting {
		return problem.Invalid("%s: it changes nothing of the template of StatefulSet %s", field,
			set.Name)
	}
	_, err = w.annotations(string(p.Owner.UID))
	if err != nil {
		return err
	}
	why, err := roll.Roller{Deps: p.Deps}.Unsettled(ctx, set)
	if err != nil {
		return err
	}
	if why != "" {
		return problem.NotYet("StatefulSet %s cannot be rolled now: %s", set.Name, why)
	}
	return contract.Save(target, record)
}

// rehearse makes a dry run of the change, and returns the template as it would be. The API server
// checks it, and sets defaults.
func (p podTemplate) rehearse(
	ctx context.Context, set *appsv1.StatefulSet, template corev1.PodTemplateSpec,
) (corev1.PodTemplateSpec, error) {
	changed := set.DeepCopy()
	changed.Spec.Template, changed.Spec.UpdateStrategy = *template.DeepCopy(), roll.OnDelete
	err := p.Cluster.Patch(ctx, changed,
		client.StrategicMergeFrom(set, client.MergeFromWithOptimisticLock{}), client.DryRunAll)
	switch {
	case problem.Refuses(err):
		return template, problem.Invalid("%s: the API server refuses the template of StatefulSet %s: %s",
			field, set.Name, p.hide(problem.Refusal(err)))
	case err != nil:
		return template, p.hidden(fmt.Errorf("make a dry run of the template of StatefulSet %s: %w",
			set.Name, err))
	}
	lost, err := (way{
		former:  set.Spec.Template,
		changed: template,
	}).lost(&changed.Spec.Template)
	if err != nil || len(lost) > 0 {
		return template, problem.Unsupported(
			"%s: the API server, or a webhook, changes %s of the template of StatefulSet %s otherwise",
			field, inWords(lost), set.Name)
	}
	return changed.Spec.Template, nil
}

func (p podTemplate) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	record, recorded, err := contract.Load[templateRecord](target)
	if err != nil || !recorded || len(record.Fields) == 0 {
		return false, err
	}
	set, err := roll.Recorded(ctx, p.Deps, record.StatefulSet, record.UID)
	if err != nil || set == nil {
		return false, err
	}
	w, marked, err := wayOf(set, string(p.Owner.UID))
	if err != nil || !marked {
		return false, err
	}
	lost, err := w.lost(&set.Spec.Template)
	return len(lost) == 0, err
}

// write changes the template, the strategy and the annotations of a StatefulSet by one patch,
// unless it has changed since it was read.
func (p podTemplate) write(
	ctx context.Context, set *appsv1.StatefulSet, change func(*appsv1.StatefulSet),
) error {
	changed := set.DeepCopy()
	change(changed)
	if apiequality.Semantic.DeepEqual(set, changed) {
		return nil
	}
	err := p.Cluster.Patch(ctx, changed,
		client.StrategicMergeFrom(set, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return p.hidden(fmt.Errorf("patch the template of StatefulSet %s: %w", set.Name, err))
	}
	return nil
}
