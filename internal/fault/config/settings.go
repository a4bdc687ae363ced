package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/target"
)

// settings changes settings of a server process by one CONFIG SET.
type settings struct {
	contract.Deps
	values map[string]string        // of the spec
	field  func(name string) string // the field of the spec that contains a setting
	// setting means that a load runs with the values: a replaced pod may have them from its file.
	setting bool
}

// settingsRecord is the record of settings that are changed.
type settingsRecord struct {
	Old map[string]string `json:"old"` // their values before, by name
	// new values that CONFIG GET formats otherwise than the spec
	AsSet map[string]string `json:"asSet,omitempty"`
	Set   bool              `json:"set,omitempty"` // the new values were set
	// of the process, before; nil where the server does not count its CONFIG REWRITEs
	Tally *target.Tally `json:"tally,omitempty"`
	// the configuration file, if it is on a volume that outlives the pod
	File string `json:"file,omitempty"`
	// the server cannot write its configuration file, as one of a ConfigMap
	Sealed bool `json:"sealed,omitempty"`
	// new values with which another process started: its file contains them, and is to be rewritten
	Kept string `json:"kept,omitempty"`
	// values that are neither the old nor the new ones: somebody else's, which the revert leaves
	Left map[string]string `json:"left,omitempty"`
	// why the configuration file may contain new values after the revert
	Doubt string `json:"doubt,omitempty"`
}

// longestCommand is the size limit of the manual revert command in the status, in bytes.
const longestCommand = 2048

// record reads the present values. To find settings that the server does not have or cannot change
// it sets each to its present value, which changes nothing.
func (s settings) record(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (settingsRecord, error) {
	none := settingsRecord{}
	for _, command := range [][]string{
		append([]string{"CONFIG", "GET"}, s.names()...),
		{"CONFIG", "SET", s.names()[0], "x"},
	} {
		err := s.MayRun(ctx, target.Address, command...)
		if err != nil {
			return none, err
		}
	}
	old, err := s.get(ctx, target.Address)
	if err != nil {
		return none, s.refusal(err, target.Address, "GET")
	}
	for _, name := range s.names() {
		if _, ok := old[name]; !ok {
			return none, problem.Invalid("%s: the server at %s has no such setting", s.field(name),
				target.Address)
		}
	}
	if err := s.set(ctx, target.Address, old); err != nil {
		return none, s.refusal(err, target.Address, "SET")
	}
	record := settingsRecord{Old: map[string]string{}}
	for _, name := range s.names() {
		record.Old[name] = old[name]
	}
	if err := s.recordFile(ctx, target, &record); err != nil {
		return none, err
	}
	n := len(s.manualRevertCommand(target, record))
	if n > longestCommand {
		return none, problem.Invalid(
			"%s: the command that would revert all settings has %d bytes, and at most %d can be recorded: "+
				"change fewer settings", s.field(s.names()[0]), n, longestCommand)
	}
	return record, nil
}

// recordFile records how to find out later whether the configuration file was rewritten meanwhile.
func (s settings) recordFile(
	ctx context.Context, t *v1alpha1.FaultTarget, record *settingsRecord,
) error {
	info, err := s.Info(ctx, t.Address, "everything")
	if err != nil {
		return err
	}
	record.Tally = target.TallyOf(info)
	file := info["config_file"]
	if file == "" {
		return nil
	}
	err = s.MayRun(ctx, t.Address, "CONFIG", "REWRITE")
	if err != nil {
		return err
	}
	pod, err := s.Pod(ctx, t.Pod)
	if err != nil {
		return err
	}
	mount, volume := s.mountOf(pod, path.Clean(file))
	record.Sealed = mount.ReadOnly || volume.ConfigMap != nil || volume.Secret != nil ||
		volume.Projected != nil
	// A pod of a ReplicaSet has no successor of its name.
	owner := metav1.GetControllerOf(pod)
	if volume.PersistentVolumeClaim != nil && owner != nil && owner.Kind != "ReplicaSet" {
		record.File = path.Clean(file)
	}
	return nil
}

// mountOf is where a file of the Redis container is mounted from, and the volume; both are empty
// for a file of the image.
func (s settings) mountOf(
	pod *corev1.Pod, file string,
) (mount corev1.VolumeMount, volume corev1.Volume) {
	for _, m := range s.Container(pod).VolumeMounts {
		at := path.Clean(m.MountPath)
		if (file == at || strings.HasPrefix(file, strings.TrimSuffix(at, "/")+"/")) &&
			len(at) > len(mount.MountPath) {
			mount = m
			mount.MountPath = at
		}
	}
	for _, v := range pod.Spec.Volumes {
		if mount.MountPath != "" && v.Name == mount.Name {
			volume = v
		}
	}
	return mount, volume
}

// begun reports whether the process that was recorded has other values than were recorded.
func (s settings) begun(
	ctx context.Context, t *v1alpha1.FaultTarget, record settingsRecord,
) (bool, error) {
	at, err := s.Locate(ctx, t)
	if err != nil || at.Identity != target.Original {
		return false, err
	}
	now, err := s.get(ctx, at.Address)
	return err == nil && len(differing(now, record.Old)) > 0, err
}

// change sets the new values, and records how the server formats them.
func (s settings) change(
	ctx context.Context, t *v1alpha1.FaultTarget, record *settingsRecord,
) error {
	at, err := s.Locate(ctx, t)
	if err != nil || at.Identity != target.Original {
		return err
	}
	if err := s.set(ctx, at.Address, s.values); err != nil {
		return s.refusal(err, at.Address, "SET")
	}
	now, err := s.get(ctx, at.Address)
	if err != nil {
		return err
	}
	record.Set, record.AsSet = true, differing(now, s.values)
	return nil
}

// effect compares what CONFIG GET shows with what was set.
func (s settings) effect(
	ctx context.Context, t *v1alpha1.FaultTarget, record settingsRecord,
) (v1alpha1.Effect, string) {
	at, err := s.Locate(ctx, t)
	switch {
	case err != nil:
		return contract.Unseen(err)
	case at.Identity == target.Absent,
		at.Identity == target.Replacement && !(s.setting && at.Address != ""):
		return contract.NotObserved(
			"pod %s (%s) does not exist any more, nor does its process", t.Pod, t.UID)
	}
	now, err := s.get(ctx, at.Address)
	if err != nil {
		return contract.Unseen(err)
	}
	if !record.Set {
		return v1alpha1.EffectNotObserved, "CONFIG GET still shows " + inWords(now)
	}
	prefix := "CONFIG GET shows "
	switch at.Identity {
	case target.Successor:
		prefix = "the server has restarted: CONFIG GET shows "
	case target.Replacement:
		prefix = "the pod was replaced: CONFIG GET shows "
	}
	want := s.asSet(record)
	if lost := differing(now, want); len(lost) > 0 {
		instead := map[string]string{}
		for name := range lost {
			instead[name] = want[name]
		}
		return v1alpha1.EffectNotObserved, prefix + inWords(lost) + " instead of " + inWords(instead)
	}
	return v1alpha1.EffectConfirmed, prefix + inWords(now)
}

// asSet are the new values, as the server formats them where that is recorded.
func (s settings) asSet(record settingsRecord) map[string]string {
	values := maps.Clone(s.values)
	maps.Copy(values, record.AsSet)
	return values
}

// get reads the settings of the fault, in one command.
func (s settings) get(ctx context.Context, address string) (map[string]string, error) {
	return s.Settings(ctx, address, s.names()...)
}

// set sets values in one command: all or none.
func (s settings) set(ctx context.Context, address string, values map[string]string) error {
	command := []any{"CONFIG", "SET"}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		command = append(command, name, values[name])
	}
	_, err := s.Servers.Do(ctx, address, s.Login, command...)
	return err
}

// refusal turns a server's error reply to a CONFIG command into a Problem that names the field.
func (s settings) refusal(err error, address, subcommand string) error {
	if err == nil || !redis.IsReply(err) {
		return err
	}
	told := s.Refusal(err, address, "CONFIG", subcommand)
	if !errors.Is(told, err) {
		return told
	}
	if len(s.values) > 1 && strings.Contains(err.Error(), "wrong number of arguments") {
		return problem.Unsupported(
			"%v: this server accepts one setting in a CONFIG %s; several need Redis 7. Change one per fault",
			err, subcommand)
	}
	field := s.field(s.names()[0])
	for _, name := range s.names() {
		if strings.Contains(err.Error(), "'"+name+"'") {
			field = s.field(name)
		}
	}
	return &problem.Problem{
		Reason:  v1alpha1.ReasonInvalidSpec,
		Message: fmt.Sprintf("%s: %v", field, err),
		Lasting: true,
	}
}

func (s settings) names() []string {
	return slices.Sorted(maps.Keys(s.values))
}

// differing are the values of now that differ from want.
func differing(now, want map[string]string) map[string]string {
	found := map[string]string{}
	for name, value := range want {
		if is, ok := now[name]; ok && is != value {
			found[name] = is
		}
	}
	return found
}

// inWords formats values: appendfsync always, maxmemory 0.
func inWords(values map[string]string) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		words = append(words, name+" "+visible(values[name]))
	}
	return strings.Join(words, ", ")
}

// visible is a value for people.
func visible(value string) string {
	if value == "" {
		return `""`
	}
	return value
}

// manualRevertCommand is the command that reverts all settings; "" where nothing was recorded.
func (s settings) manualRevertCommand(target *v1alpha1.FaultTarget, record settingsRecord) string {
	if len(record.Old) == 0 {
		return ""
	}
	words := []string{"CONFIG", "SET"}
	for _, name := range slices.Sorted(maps.Keys(record.Old)) {
		if _, left := record.Left[name]; !left {
			words = append(words, name, record.Old[name])
		}
	}
	if len(words) == 2 {
		return ""
	}
	command := s.CLI(target, words...)
	if _, limited := record.Old["maxclients"]; limited { // it may take several attempts to connect
		command = "until " + command + " | grep -q OK; do sleep 1; done"
	}
	if record.Kept != "" || record.File != "" || len(s.Sentinels.Addresses) > 0 {
		command += " && " + s.CLI(target, "CONFIG", "REWRITE")
	}
	return command
}
