package config

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/owner"
	"github.com/redquake/redquake/internal/fault/roll"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target"
)

// recordRoll plans the change of the StatefulSet's template. A Problem returns why it would have no
// effect, or be reverted.
func (t ioThreads) recordRoll(
	ctx context.Context, target *v1alpha1.FaultTarget, knowsReads bool,
) (*templateEdit, error) {
	set, err := roll.SetOf(ctx, t.Deps, target, "the server takes io-threads only at its start",
		(*owner.Owner).Startup)
	if err != nil {
		return nil, err
	}
	container := containerIn(&set.Spec.Template.Spec, target.Container)
	if container == nil {
		return nil, problem.Unsupported("the template of StatefulSet %s has no container %s", set.Name,
			target.Container)
	}
	edit := &templateEdit{
		StatefulSet: set.Name,
		UID:         string(set.UID),
		Strategy:    set.Spec.UpdateStrategy,
	}
	err = t.plan(ctx, edit, container, t.arguments(knowsReads))
	if err != nil {
		return nil, err
	}
	if len(edit.manualRevertCommand(t.Namespace)) > longestCommand {
		return nil, problem.Unsupported("too long to be recorded: the %s of StatefulSet %s",
			edit.optionSource, set.Name)
	}
	why, err := t.roller(edit.optionSource).Unsettled(ctx, set)
	if err == nil && why != "" {
		err = problem.NotYet("StatefulSet %s cannot be rolled now: %s", set.Name, why)
	}
	return edit, err
}

// plan determines what of the container is changed, and into what. A Problem returns why nothing
// can be.
func (t ioThreads) plan(
	ctx context.Context, edit *templateEdit, container *corev1.Container, options []string,
) error {
	var why string
	if edit.optionSource, why = optionSourceOf(container); why == "" {
		why = edit.fixed(container)
	}
	if why != "" {
		return problem.Unsupported(
			"the server takes io-threads only at its start, and container %s of StatefulSet %s %s, or set "+
				"io-threads in the server's configuration yourself", container.Name, edit.StatefulSet, why)
	}
	edit.Before = edit.of(&corev1.PodSpec{Containers: []corev1.Container{*container}})
	option := plainTextSecret(edit.options(edit.Before))
	if option != "" {
		return problem.Unsupported(
			"%s has its value in the %s of StatefulSet %s, which the record of the fault would show: give "+
				"it by a Secret, as $(NAME) of the container's env, or in the server's configuration", option,
			edit.optionSource, edit.StatefulSet)
	}
	inherited := false
	if edit.Variable != "" && edit.Before == nil {
		var err error
		if inherited, err = t.inherits(ctx, container, edit.Variable); err != nil {
			return fmt.Errorf("read whether envFrom of container %s gives %s: %w", container.Name,
				edit.Variable, err)
		}
	}
	edit.After = edit.with(edit.Before, options, inherited)
	return nil
}

// plainTextSecret is the first option whose value is a secret in plain text; "" = none. The value
// is the rest of the argument, which Redis splits, or the next one.
func plainTextSecret(arguments []string) string {
	for i, argument := range arguments {
		option, value := strings.TrimSpace(argument), ""
		space := strings.IndexFunc(option, unicode.IsSpace)
		if space >= 0 {
			option, value = option[:space], strings.TrimSpace(option[space:])
		} else if i+1 < len(arguments) {
			value = arguments[i+1]
		}
		switch strings.TrimLeft(strings.ToLower(option), "-") {
		case "requirepass", "masterauth", "primaryauth", "user", "tls-key-file-pass",
			"tls-client-key-file-pass":
			if value != "" && !strings.HasPrefix(strings.Trim(value, `"'`), "$(") {
				return option
			}
		}
	}
	return ""
}

// roller replaces the pods whose container gets other options than the template gives.
func (t ioThreads) roller(source optionSource) roll.Roller {
	// Not the revision alone: a new one may be somebody else's change.
	return roll.Roller{Deps: t.Deps, Differs: func(set *appsv1.StatefulSet, pod *corev1.Pod) bool {
		return !slices.Equal(source.of(&pod.Spec), source.of(&set.Spec.Template.Spec))
	}}
}

// arguments are appended to the server's own. They take precedence over its configuration file.
func (t ioThreads) arguments(knowsReads bool) []string {
	added := []string{"--io-threads", strconv.Itoa(int(t.count))}
	if t.reads && knowsReads {
		added = append(added, "--io-threads-do-reads", "yes")
	}
	return added
}

func (t ioThreads) rollBegun(ctx context.Context, edit templateEdit) (bool, error) {
	set, err := t.edited(ctx, edit)
	if err != nil || set == nil {
		return false, err
	}
	return slices.Equal(edit.of(&set.Spec.Template.Spec), edit.After), nil
}

// rollOut writes the new template, and then replaces the pods. It is called for every target of one
// StatefulSet, and continues where the last call ended.
func (t ioThreads) rollOut(ctx context.Context, edit templateEdit) (contract.Progress, error) {
	set, err := t.edited(ctx, edit)
	if err != nil || set == nil {
		return contract.Progress{}, err
	}
	r := t.roller(edit.optionSource)
	r.Check = func(ctx context.Context, pod *corev1.Pod) error {
		return t.checkThreads(ctx, pod, edit)
	}
	switch now := edit.of(&set.Spec.Template.Spec); {
	case slices.Equal(now, edit.After):
		return roll.Retried(r.Advance(ctx, set))
	case slices.Equal(now, edit.Before):
		err := t.apply(ctx, set, edit.optionSource, edit.After, roll.OnDelete)
		if err != nil {
			return contract.Progress{}, err
		}
		return contract.Underway("the template of StatefulSet %s is changed, no pod is replaced yet",
			set.Name), nil
	default:
		return contract.Progress{}, fmt.Errorf(
			"somebody else changed the %s in StatefulSet %s: the fault's options are not added to that",
			edit.optionSource, edit.StatefulSet)
	}
}

// checkThreads returns an error where the server of a new pod does not have the number: the roll is
// not continued.
func (t ioThreads) checkThreads(ctx context.Context, pod *corev1.Pod, edit templateEdit) error {
	now, err := t.ask(ctx, t.Address(pod))
	if err == nil && !t.satisfied(now) {
		err = &roll.Ineffective{
			Message: fmt.Sprintf(
				"the server of pod %s has io-threads %s%s, although the %s has it: it does not reach the "+
					"server, or the configuration overrides it. Set io-threads there",
				pod.Name, now.count, readsInWords(now.reads), edit.optionSource),
		}
	}
	return err
}

// rollBack restores the old arguments, replaces the pods again, and finally restores the
// StatefulSet's strategy.
func (t ioThreads) rollBack(
	ctx context.Context, target *v1alpha1.FaultTarget, record threadsRecord,
) (contract.Progress, error) {
	edit := *record.Template
	set, err := t.edited(ctx, edit)
	if err != nil || set == nil {
		return roll.Retried(contract.Progress{}, err)
	}
	now := edit.of(&set.Spec.Template.Spec)
	switch {
	case slices.Equal(now, edit.After):
		err := t.apply(ctx, set, edit.optionSource, edit.Before, roll.OnDelete)
		if err != nil {
			return roll.Retried(contract.Progress{}, err)
		}
		return contract.Underway(
			"the template of StatefulSet %s is restored, its pods are not replaced yet", set.Name), nil
	case !slices.Equal(now, edit.Before):
		record.Released = true
		if err := contract.Save(target, record); err != nil {
			return contract.Progress{}, err
		}
		return t.leaveRelease(ctx, set, edit, now)
	case set.Spec.UpdateStrategy.Type != roll.OnDelete.Type: // never changed, or reverted already
		return t.verifyThreads(ctx, target, record)
	}
	progress, err := roll.Retried(t.roller(edit.optionSource).Advance(ctx, set))
	if err != nil || !progress.Complete() {
		return progress, err
	}
	err = t.apply(ctx, set, edit.optionSource, edit.Before, edit.Strategy)
	if err != nil {
		return roll.Retried(contract.Progress{}, err)
	}
	return t.verifyThreads(ctx, target, record)
}

// leaveRelease reverts the fault in a template that somebody else has changed meanwhile, as a
// release does: what that has set stays, without the fault's options, and the strategy is the
// former one again. So the StatefulSet's own controller rolls it out, unless the strategy was
// OnDelete.
func (t ioThreads) leaveRelease(
	ctx context.Context, set *appsv1.StatefulSet, edit templateEdit, now []string,
) (contract.Progress, error) {
	released := edit.without(now)
	if set.Spec.UpdateStrategy.Type == roll.OnDelete.Type &&
		edit.Strategy.Type != roll.OnDelete.Type || !slices.Equal(now, released) {
		err := t.apply(ctx, set, edit.optionSource, released, edit.Strategy)
		if err != nil {
			return roll.Retried(contract.Progress{}, err)
		}
		return contract.Underway(
			"somebody else changed the %s in StatefulSet %s meanwhile: that stays, without the fault's options",
			edit.optionSource, set.Name), nil
	}
	if edit.Strategy.Type == roll.OnDelete.Type {
		return roll.Retried(t.roller(edit.optionSource).Advance(ctx, set))
	}
	pods, err := t.ListPods(ctx, client.MatchingLabels(set.Spec.Template.Labels))
	if err != nil {
		return roll.Retried(contract.Progress{},
			fmt.Errorf("read the pods of StatefulSet %s: %w", set.Name, err))
	}
	for i := range pods {
		if metav1.IsControlledBy(&pods[i], set) && slices.Equal(edit.of(&pods[i].Spec), edit.After) {
			return contract.Underway("the controller of StatefulSet %s has not replaced pod %s yet",
				set.Name, pods[i].Name), nil
		}
	}
	return contract.Progress{}, nil
}

// leave implements contract.Leaver for a roll: the StatefulSet's own controller replaces the pods.
func (t ioThreads) leave(ctx context.Context, edit templateEdit) error {
	set, err := t.edited(ctx, edit)
	if err != nil || set == nil {
		return err
	}
	words := edit.without(edit.of(&set.Spec.Template.Spec))
	strategy := set.Spec.UpdateStrategy
	if strategy.Type == roll.OnDelete.Type {
		strategy = edit.Strategy
	}
	return t.apply(ctx, set, edit.optionSource, words, strategy)
}

// without returns the words of a source without the options that the fault has added to it.
func (e templateEdit) without(now []string) []string {
	switch {
	case slices.Equal(now, e.After), slices.Equal(now, e.Before):
		return e.Before
	case e.Variable == "":
		added := e.After[len(e.Before):]
		for at := 0; at+len(added) <= len(now); at++ {
			if slices.Equal(now[at:at+len(added)], added) {
				return slices.Delete(slices.Clone(now), at, at+len(added))
			}
		}
		return now
	}
	before := strings.Join(e.Before, " ")
	added, whole := strings.CutPrefix(strings.Join(e.After, " "), before)
	if whole && len(now) == 1 {
		return []string{strings.TrimSpace(strings.Replace(now[0], added, "", 1))}
	}
	return now
}

// edited reads the StatefulSet of a change; nil where it was deleted or replaced.
func (t ioThreads) edited(ctx context.Context, edit templateEdit) (*appsv1.StatefulSet, error) {
	return roll.Recorded(ctx, t.Deps, edit.StatefulSet, edit.UID)
}

// verifyThreads returns an error where a server still has the fault's number although its template
// is the old one: a CONFIG REWRITE, such as Sentinel's, wrote it into a file on a volume. No
// command can change it there.
func (t ioThreads) verifyThreads(
	ctx context.Context, target *v1alpha1.FaultTarget, record threadsRecord,
) (contract.Progress, error) {
	pod, err := t.Pod(ctx, target.Pod)
	if apierrors.IsNotFound(err) {
		return contract.Progress{}, nil
	} else if err != nil {
		return roll.Retried(contract.Progress{}, err)
	}
	now, err := t.ask(ctx, t.Address(pod))
	if err != nil {
		return roll.Retried(contract.Progress{}, err)
	}
	if record.Count != now.count && t.satisfied(now) {
		return contract.Progress{}, fmt.Errorf(
			"the server of pod %s still has io-threads %s instead of %s although its arguments are the "+
				"old ones: a CONFIG REWRITE has written it into its configuration file. Remove it from that file, and restart the pod",
			target.Pod, now.count, record.Count)
	}
	return contract.Progress{}, nil
}

// manualRevertCommand restores the StatefulSet's template and strategy. Its controller rolls the
// pods then, unless the strategy is OnDelete.
func (e templateEdit) manualRevertCommand(namespace string) string {
	strategy, _ := json.Marshal(e.Strategy) // plain data
	container, _ := json.Marshal(e.patch(e.Before))
	patch := fmt.Sprintf(`{"spec":{"updateStrategy":%s,"template":{"spec":{"containers":[%s]}}}}`,
		strategy, container)
	command := fmt.Sprintf("kubectl -n %s patch statefulset %s --type strategic -p %s", namespace,
		e.StatefulSet, target.ShellWord(patch))
	if e.Strategy.Type == roll.OnDelete.Type {
		command += "; then delete its pods one by one, replicas first"
	}
	return command
}
