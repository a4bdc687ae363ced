package podtemplate

import (
	"encoding/json"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"

	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redact"
)

// longestPatch is the limit of a patch, in bytes.
const longestPatch = 16 << 10

// patched is a template with the patch applied. A Problem names what is wrong with the patch.
func (p podTemplate) patched(
	template *corev1.PodTemplateSpec,
) (result corev1.PodTemplateSpec, err error) {
	if len(p.patch) > longestPatch {
		return result, problem.Invalid("%s: it has %d bytes, and at most %d are possible", field,
			len(p.patch), longestPatch)
	}
	original, err := json.Marshal(template)
	if err != nil {
		return result, err
	}
	merged, err := strategicpatch.StrategicMergePatch(original, p.patch, corev1.PodTemplateSpec{})
	if err != nil {
		return result, problem.Invalid("%s: it cannot be merged into a pod template: %s", field,
			p.hide(mergeError(err)))
	}
	unknown, err := kjson.UnmarshalStrict(merged, &result)
	if err != nil {
		return result, problem.Invalid("%s: the result is no pod template: %s", field,
			p.hide(err.Error()))
	}
	if len(unknown) > 0 {
		return result, problem.Invalid("%s: the result is no pod template: %s", field,
			p.hide(unknown[0].Error()))
	}
	return result, nil
}

// mergeError is the text of an error of the merge, without the item of a list that it may quote.
func mergeError(err error) string {
	_, key, quotes := strings.Cut(err.Error(), "does not contain declared merge key: ")
	if quotes {
		return "an item of a list lacks its " + key
	}
	return err.Error()
}

// permitted refuses a template whose pods the StatefulSet would not find, or which would not run
// the server.
func (p podTemplate) permitted(
	set *appsv1.StatefulSet, changed *corev1.PodTemplateSpec, container string,
) error {
	var keys []string
	if set.Spec.Selector != nil {
		for key := range set.Spec.Selector.MatchLabels {
			keys = append(keys, key)
		}
		for _, e := range set.Spec.Selector.MatchExpressions {
			keys = append(keys, e.Key)
		}
	}
	if p.Spec != nil && p.Spec.PodSelector != nil {
		keys = append(keys, labelsOf(p.Spec.PodSelector)...)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if set.Spec.Template.Labels[key] != changed.Labels[key] {
			return problem.Invalid(
				"%s.metadata.labels[%s]: the pods of StatefulSet %s are selected by this label: leave it as it is",
				field, key, set.Name)
		}
	}
	if !slices.ContainsFunc(changed.Spec.Containers, func(c corev1.Container) bool {
		return c.Name == container
	}) {
		return problem.Invalid("%s.spec.containers: it removes container %s, which runs the server",
			field, container)
	}
	return nil
}

func labelsOf(selector *metav1.LabelSelector) (keys []string) {
	for key := range selector.MatchLabels {
		keys = append(keys, key)
	}
	for _, e := range selector.MatchExpressions {
		keys = append(keys, e.Key)
	}
	return keys
}

// hide removes from a text what the patch holds that may be a secret.
func (p podTemplate) hide(text string) string {
	return redact.Text(text, p.secrets()...)
}

// hidden is an error whose text is hidden; what it wraps can still be asked for.
func (p podTemplate) hidden(err error) error {
	return &hiddenError{p.hide(err.Error()), err}
}

type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string {
	return e.text
}

func (e *hiddenError) Unwrap() error {
	return e.err
}

// secrets are the values of the patch that may be secret: those of variables, arguments, commands
// and annotations.
func (p podTemplate) secrets() []string {
	var patch any
	if json.Unmarshal(p.patch, &patch) != nil {
		return nil
	}
	return secretsIn(patch, false)
}

func secretsIn(value any, secret bool) (found []string) {
	switch v := value.(type) {
	case string:
		if secret {
			found = append(found, v)
		}
	case []any:
		for _, item := range v {
			found = append(found, secretsIn(item, secret)...)
		}
	case map[string]any:
		for key, item := range v {
			found = append(found, secretsIn(item,
				secret || slices.Contains([]string{"value", "args", "command", "annotations"}, key))...)
		}
	}
	return found
}
