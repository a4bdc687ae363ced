package children

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/experiment"
)

// Values of the label app.kubernetes.io/component on what an experiment makes.
const (
	ComponentRun     = "run"     // a load test or a fault of a run
	ComponentSetting = "setting" // a fault that is held for a run
	ComponentCheck   = "check"   // a dry run
)

// ExperimentRecordKey is the key of binaryData that holds an experiment's record.
const ExperimentRecordKey = "runs.json.gz"

// ExperimentRecordName is the name of the ConfigMap with an experiment's record.
func ExperimentRecordName(experiment string) string {
	return experiment + "-experiment"
}

// RunName is the name of the load test of an experiment's run.
func RunName(experiment string, number int) string {
	return fmt.Sprintf("%s-%04d", experiment, number)
}

// ExperimentRecord is the ConfigMap with an experiment's record.
func ExperimentRecord(e *v1alpha1.RedisExperiment, data []byte) *corev1.ConfigMap {
	return configMap(ofExperiment(e, ExperimentRecordName(e.Name), ComponentResults),
		ExperimentRecordKey, data)
}

// RunLoadTest is the load test of a run.
func RunLoadTest(
	e *v1alpha1.RedisExperiment, v *experiment.Variant, slot experiment.Slot,
) *v1alpha1.RedisLoadTest {
	test := &v1alpha1.RedisLoadTest{
		TypeMeta:   loadTestType,
		ObjectMeta: ofRun(e, v, slot, RunName(e.Name, slot.Number), ComponentRun),
		Spec:       *v.Load.DeepCopy(),
	}
	// these are the experiment's
	test.Spec.Abort, test.Spec.Suspend, test.Spec.TTLSecondsAfterFinished = false, false, nil
	return test
}

// RunSettings are the settings of a run, in the order in which they are applied.
func RunSettings(
	e *v1alpha1.RedisExperiment, v *experiment.Variant, slot experiment.Slot,
) []*v1alpha1.RedisFault {
	var all []*v1alpha1.RedisFault
	for i, s := range v.Settings {
		name := fmt.Sprintf("%s-s%d", RunName(e.Name, slot.Number), i+1)
		f := &v1alpha1.RedisFault{
			TypeMeta:   faultType,
			ObjectMeta: ofRun(e, v, slot, name, ComponentSetting),
			Spec:       *s.Spec.DeepCopy(),
		}
		f.Spec.LoadTestRef = &v1alpha1.LoadTestReference{Name: RunName(e.Name, slot.Number)}
		all = append(all, f)
	}
	return all
}

// RunFaults are the faults of a run.
func RunFaults(
	e *v1alpha1.RedisExperiment, v *experiment.Variant, slot experiment.Slot, seed int64,
) []*v1alpha1.RedisFault {
	var all []*v1alpha1.RedisFault
	for i := range v.Faults {
		of := &v.Faults[i]
		f := &v1alpha1.RedisFault{
			TypeMeta:   faultType,
			ObjectMeta: ofRun(e, v, slot, runFaultName(e, slot.Number, of.Name), ComponentRun),
			Spec:       runnable(&of.Spec),
		}
		nameBeside(e, slot.Number, &f.Spec)
		f.Spec.LoadTestRef = &v1alpha1.LoadTestReference{Name: RunName(e.Name, slot.Number)}
		// somebody else's load test of that name must not decide which Redis is broken
		if f.Spec.Target == nil {
			f.Spec.Target = v.Load.Target.DeepCopy()
		}
		if of.RandomDelay != nil {
			delayed(&f.Spec.Trigger, experiment.Delay(seed, slot.Number, i, of.RandomDelay.Duration))
		}
		all = append(all, f)
	}
	return all
}

// runFaultName is the name of a fault of a run.
func runFaultName(e *v1alpha1.RedisExperiment, number int, name string) string {
	return RunName(e.Name, number) + "-" + name
}

// nameBeside replaces the names of an experiment's faults in spec.beside by those of a run's.
func nameBeside(e *v1alpha1.RedisExperiment, number int, spec *v1alpha1.RedisFaultSpec) {
	for i, name := range spec.Beside {
		spec.Beside[i] = runFaultName(e, number, name)
	}
}

// runnable is a fault's spec without what is the experiment's.
func runnable(spec *v1alpha1.RedisFaultSpec) v1alpha1.RedisFaultSpec {
	s := *spec.DeepCopy()
	s.Abort, s.Suspend, s.TTLSecondsAfterFinished = false, false, nil
	return s
}

// delayed adds a delay to a trigger.
func delayed(t *v1alpha1.FaultTrigger, by time.Duration) {
	for _, length := range []**metav1.Duration{&t.After, &t.AfterBeside} {
		if *length != nil {
			*length = &metav1.Duration{Duration: (*length).Duration + by}
			return
		}
	}
	steady := v1alpha1.DefaultSteadyFor
	if t.SteadyFor != nil {
		steady = t.SteadyFor.Duration
	}
	t.SteadyFor = &metav1.Duration{Duration: steady + by}
}

// Check is a dry run of a setting or a fault, with the cell of which it is one.
type Check struct {
	Fault *v1alpha1.RedisFault
	Cell  string
	What  string // such as the setting appendfsync=always, or fault kill
}

// Checks are dry runs of all different settings and faults of an experiment. Of a cell whose
// settings change the number of servers only those are checked: what its faults will find does not
// exist yet.
func Checks(e *v1alpha1.RedisExperiment, variants []experiment.Variant) []Check {
	var all []Check
	seen := map[string]bool{}
	add := func(v *experiment.Variant, what string, spec v1alpha1.RedisFaultSpec) {
		spec.DryRun = true
		if key := keyOf(&spec); !seen[key] {
			seen[key] = true
			f := &v1alpha1.RedisFault{
				TypeMeta:   faultType,
				ObjectMeta: ofExperiment(e, e.Name+"-check-"+key, ComponentCheck),
				Spec:       spec,
			}
			f.Annotations = map[string]string{v1alpha1.AnnotationCell: v.Name}
			all = append(all, Check{f, v.Name, what})
		}
	}
	for i := range variants {
		v := &variants[i]
		resized := false
		for _, s := range v.Settings {
			spec := *s.Spec.DeepCopy()
			spec.LoadTestRef = &v1alpha1.LoadTestReference{Name: RunName(e.Name, 1)}
			add(v, "the setting "+s.Parameter+"="+s.Value, spec)
			resized = resized || s.Spec.Action.Resizes()
		}
		for j := range v.Faults {
			if resized {
				break
			}
			spec := runnable(&v.Faults[j].Spec)
			nameBeside(e, 1, &spec)
			if spec.Target == nil {
				spec.Target = v.Load.Target.DeepCopy()
			}
			spec.LoadTestRef = &v1alpha1.LoadTestReference{Name: RunName(e.Name, 1)}
			add(v, "fault "+v.Faults[j].Name, spec)
		}
	}
	return all
}

// keyOf tells specs apart: another spec is another dry run.
func keyOf(spec *v1alpha1.RedisFaultSpec) string {
	text, _ := json.Marshal(spec) // cannot fail: it was read from JSON
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:4])
}

var (
	loadTestType = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RedisLoadTest"}
	faultType    = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RedisFault"}
)

// ofExperiment is the metadata of an experiment's child.
func ofExperiment(e *v1alpha1.RedisExperiment, name, component string) metav1.ObjectMeta {
	return owned(e, "RedisExperiment", name, ExperimentLabels(e.Name, component))
}

// ExperimentLabels select an experiment's children.
func ExperimentLabels(experiment, component string) map[string]string {
	return labels(v1alpha1.LabelExperiment, experiment, component)
}

// ofRun is the metadata of what belongs to a run.
func ofRun(
	e *v1alpha1.RedisExperiment, v *experiment.Variant, slot experiment.Slot, name, component string,
) metav1.ObjectMeta {
	m := ofExperiment(e, name, component)
	maps.Copy(m.Labels, map[string]string{
		v1alpha1.LabelRun:   strconv.Itoa(slot.Number),
		v1alpha1.LabelRound: strconv.Itoa(slot.Round),
	})
	m.Annotations = map[string]string{v1alpha1.AnnotationCell: v.Name}
	return m
}
