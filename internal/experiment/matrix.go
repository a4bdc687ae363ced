package experiment

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
)

// Limits of an experiment.
const (
	MaxCells = 128
	MaxRuns  = 2000

	maxCellName = 200 // the status names each cell several times
)

// Variant is a cell as it will run.
type Variant struct {
	Name   string            // such as appendfsync=always,users=1000
	Values map[string]string // the names of its values, by parameter
	// the position of the variant that it is compared with; its own = it is a baseline
	Baseline int
	Load     v1alpha1.RedisLoadTestSpec
	Settings []Setting // in the order in which they are applied
	Faults   []v1alpha1.ExperimentFault
}

// Setting is a fault that is held for a run.
type Setting struct {
	Parameter, Value string
	Spec             v1alpha1.RedisFaultSpec // but for loadTestRef
}

// Plan is an experiment as it will run.
type Plan struct {
	Variants        []Variant // in the order of the matrix, the last parameter changing fastest
	Repeat          int
	BaselineRepeats int // how often a baseline runs in a round
	Shuffled        bool
}

// settingName is how objects of settings end, so that no fault may be called so.
var settingName = regexp.MustCompile(`^s[0-9]+$`)

// NewPlan makes the cells of an experiment. The error is a problem.Problem that names the field.
func NewPlan(spec *v1alpha1.RedisExperimentSpec) (*Plan, error) {
	for i := range spec.Faults {
		name := spec.Faults[i].Name
		if settingName.MatchString(name) {
			return nil, problem.Invalid(
				"spec.faults[%d].name: %s is how the settings of a run are called: choose another name", i,
				name)
		}
	}
	parameters, err := parametersOf(spec)
	if err != nil {
		return nil, err
	}
	if err := countCells(parameters); err != nil {
		return nil, err
	}
	p := &Plan{Repeat: int(spec.Repeat), Shuffled: spec.Order != v1alpha1.OrderSequential}
	first := Variant{
		Values: map[string]string{},
		Load:   spec.Template.Spec,
		Faults: spec.Faults,
	}
	if p.Variants, err = combine([]Variant{first}, spec, parameters); err != nil {
		return nil, err
	}
	for i := range p.Variants {
		if err := p.Variants[i].check(spec); err != nil {
			return nil, err
		}
	}
	if err := p.setBaselines(spec); err != nil {
		return nil, err
	}
	if n := p.Runs(); n > MaxRuns {
		return nil, problem.Invalid("spec.repeat: %d cells, repeated %d times, are %d runs, more than %d",
			len(p.Variants), p.Repeat, n, MaxRuns)
	}
	return p, nil
}

// parameter is a parameter of the matrix with the names of its values.
type parameter struct {
	*v1alpha1.ExperimentParameter
	field string // of the experiment's spec
	names []string
}

var validName = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.+]*[A-Za-z0-9])?$`)

func parametersOf(spec *v1alpha1.RedisExperimentSpec) ([]parameter, error) {
	var all []parameter
	for i := range spec.Matrix {
		p := parameter{ExperimentParameter: &spec.Matrix[i], field: fmt.Sprintf("spec.matrix[%d]", i)}
		if err := p.nameValues(); err != nil {
			return nil, err
		}
		if other := slices.IndexFunc(all, func(o parameter) bool {
			return p.Path != "" &&
				overlap(o.Path, p.Path)
		}); other >= 0 {
			return nil, problem.Invalid("%s.path: %s is set by %s already", p.field, p.Path,
				all[other].field)
		}
		all = append(all, p)
	}
	return all, nil
}

// overlap reports whether one path is the other one, or within it.
func overlap(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+".") || a != "" && strings.HasPrefix(b, a+".")
}

func (p *parameter) nameValues() error {
	for _, s := range p.Settings {
		p.names = append(p.names, string(s.Name))
	}
	for n, v := range p.Values {
		name := v.String()
		switch {
		case n < len(p.ValueNames):
			name = string(p.ValueNames[n])
		case !validName.MatchString(name) || len(name) > 63:
			return problem.Invalid(
				"%s.valueNames: the value at position %d cannot be a name: name the values", p.field, n)
		}
		if slices.Contains(p.names, name) {
			return problem.Invalid("%s.values: the value at position %d has the name of another one",
				p.field, n)
		}
		p.names = append(p.names, name)
	}
	return nil
}

func countCells(parameters []parameter) error {
	cells := 1
	for _, p := range parameters {
		cells *= len(p.names)
		if cells > MaxCells*MaxCells {
			break
		}
	}
	if cells > MaxCells {
		return problem.Invalid(
			"spec.matrix: the combinations are more than %d cells (%s): leave out values, or split the experiment",
			MaxCells, sizes(parameters))
	}
	return nil
}

func sizes(parameters []parameter) string {
	var text []string
	for _, p := range parameters {
		text = append(text, fmt.Sprint(len(p.names)))
	}
	return strings.Join(text, " x ")
}

// combine makes a variant of each of those so far with each value of each parameter.
func combine(
	variants []Variant, spec *v1alpha1.RedisExperimentSpec, parameters []parameter,
) ([]Variant, error) {
	for _, p := range parameters {
		var next []Variant
		for _, v := range variants {
			for n := range p.names {
				with, err := v.with(spec, p, n)
				if err != nil {
					return nil, err
				}
				next = append(next, with)
			}
		}
		variants = next
	}
	return variants, nil
}

// with is a variant with the n-th value of a parameter.
func (v Variant) with(spec *v1alpha1.RedisExperimentSpec, p parameter, n int) (Variant, error) {
	v.Values = maps.Clone(v.Values)
	v.Values[p.Name] = p.names[n]
	v.Name = strings.TrimPrefix(v.Name+","+p.Name+"="+p.names[n], ",")
	if len(v.Name) > maxCellName {
		return v, problem.Invalid(
			"%s: the name of cell %.64s... is longer than %d bytes: shorten the names of parameters and "+
				"values (name, valueNames)", p.field, v.Name, maxCellName)
	}
	if p.Path != "" {
		return v.withValue(p, n)
	}
	setting := &p.Settings[n]
	v.Settings = append(slices.Clone(v.Settings), settingsOf(p, setting)...)
	for i, name := range setting.Faults {
		if !slices.ContainsFunc(spec.Faults, func(f v1alpha1.ExperimentFault) bool {
			return f.Name == name
		}) {
			return v, problem.Invalid("%s.settings[%d].faults[%d]: spec.faults has no %s", p.field, n, i,
				name)
		}
	}
	if setting.NoFaults || len(setting.Faults) > 0 {
		v.Faults = slices.DeleteFunc(slices.Clone(v.Faults), func(f v1alpha1.ExperimentFault) bool {
			return !slices.Contains(setting.Faults, f.Name)
		})
	}
	return v, nil
}

func (v Variant) withValue(p parameter, n int) (Variant, error) {
	of, rest, _ := strings.Cut(p.Path, ".")
	if of != "faults" {
		load, err := set(&v.Load, p.Path, p.Values[n])
		if err != nil {
			return v, problem.Invalid("%s, value %s: %s", p.field, p.names[n], err)
		}
		v.Load = *load
		return v, nil
	}
	name, rest, _ := strings.Cut(rest, ".")
	i := slices.IndexFunc(v.Faults, func(f v1alpha1.ExperimentFault) bool { return f.Name == name })
	if i < 0 {
		// the runs with another parameter's value do not have it; check finds one that no variant has
		return v, nil
	}
	fault, err := set(&v.Faults[i].Spec, rest, p.Values[n])
	if err != nil {
		return v, problem.Invalid("%s, value %s: faults.%s: %s", p.field, p.names[n], name, err)
	}
	v.Faults = slices.Clone(v.Faults)
	v.Faults[i].Spec = *fault
	return v, nil
}

// settingsOf are the faults that put a setting into force.
func settingsOf(p parameter, s *v1alpha1.ExperimentSetting) []Setting {
	var all []Setting
	for _, action := range s.Actions() {
		selector := v1alpha1.FaultSelector{Role: v1alpha1.RoleAny, Mode: v1alpha1.SelectAll}
		if action.Resizes() {
			selector = v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary, Mode: v1alpha1.SelectOne}
		}
		if p.Select != nil {
			selector = *p.Select
		}
		all = append(all, Setting{
			Parameter: p.Name,
			Value:     string(s.Name),
			Spec: v1alpha1.RedisFaultSpec{
				Setting: true,
				Action:  action,
				Select:  selector,
				Allow:   p.Allow,
			},
		})
	}
	return all
}

// check completes a variant, and finds what cannot work whatever Redis it is.
func (v *Variant) check(spec *v1alpha1.RedisExperimentSpec) error {
	v.Settings = slices.Clone(v.Settings) // other cells have the same, of another Redis
	stage := func(s Setting) int { return slices.Index(v1alpha1.SettingTypes, s.Spec.Action.Type) }
	slices.SortStableFunc(v.Settings, func(a, b Setting) int {
		return cmp.Compare(stage(a),
			stage(b))
	})
	for i, s := range v.Settings {
		if i > 0 && v.Settings[i-1].Spec.Action.Type == s.Spec.Action.Type {
			return problem.Invalid(
				"spec.matrix: %s and %s of one cell both set %s: put them into one parameter",
				v.Settings[i-1].Parameter, s.Parameter, s.Spec.Action.Type)
		}
		if !v.Load.Target.IsSet() {
			return problem.Invalid(
				"spec.template.spec.target: the settings of parameter %s need a Redis to which they apply",
				s.Parameter)
		}
		v.Settings[i].Spec.Target = v.Load.Target.DeepCopy()
	}
	for i := range v.Faults {
		if v.Faults[i].Spec.Target == nil && !v.Load.Target.IsSet() {
			return problem.Invalid(
				"spec.template.spec.target: fault %s needs a Redis, or a target of its own", v.Faults[i].Name)
		}
		if err := v.clash(&v.Faults[i]); err != nil {
			return err
		}
		if err := v.checkBeside(&v.Faults[i]); err != nil {
			return err
		}
	}
	for i := range spec.Matrix {
		of, name, _ := strings.Cut(spec.Matrix[i].Path, ".")
		name, rest, _ := strings.Cut(name, ".")
		if of == "faults" && (rest == "" ||
			!slices.ContainsFunc(spec.Faults, func(f v1alpha1.ExperimentFault) bool {
				return f.Name == name
			})) {
			return problem.Invalid("spec.matrix[%d].path: %s names no field of a fault of spec.faults", i,
				spec.Matrix[i].Path)
		}
	}
	return nil
}

// clash finds a fault that can never act beside a setting of its cell: both change the same. A
// setting of some of the servers may leave others for the fault.
func (v *Variant) clash(f *v1alpha1.ExperimentFault) error {
	changes := f.Spec.Action.Changes()
	for _, s := range v.Settings {
		everywhere := s.Spec.Select.Mode == v1alpha1.SelectAll &&
			s.Spec.Select.Role == v1alpha1.RoleAny || s.Spec.Action.Resizes()
		if !everywhere || f.Spec.Target != nil {
			continue
		}
		set := s.Spec.Action.Changes()
		if both := slices.IndexFunc(changes, func(name string) bool {
			return slices.Contains(set,
				name)
		}); both >= 0 {
			return problem.Invalid(
				"spec.faults: %s of cell %s changes %s, which the setting %s=%s of the cell holds: leave one "+
					"of them out, or name the faults of a setting in settings[].faults",
				f.Name, v.Name, changes[both], s.Parameter, s.Value)
		}
	}
	return nil
}

// checkBeside finds a fault that is to act beside one that its cell does not have.
func (v *Variant) checkBeside(f *v1alpha1.ExperimentFault) error {
	for _, name := range f.Spec.Beside {
		if name == f.Name {
			return problem.Invalid("spec.faults: %s of cell %s cannot act beside itself", f.Name, v.Name)
		}
		if !slices.ContainsFunc(v.Faults, func(g v1alpha1.ExperimentFault) bool {
			return g.Name == name
		}) {
			return problem.Invalid(
				"spec.faults: %s is to act beside %s, which cell %s does not have: name both in settings[].faults, or none",
				f.Name, name, v.Name)
		}
	}
	return nil
}

// setBaselines finds the baseline of each variant.
func (p *Plan) setBaselines(spec *v1alpha1.RedisExperimentSpec) error {
	baseline := map[string]string{}
	for name, value := range spec.Baseline {
		baseline[name] = string(value)
		known := p.valuesOf(name)
		if !slices.Contains(known, string(value)) {
			return problem.Invalid("spec.baseline.%s: %s is none of its values (%s)", name, value,
				strings.Join(known, ", "))
		}
	}
	if len(baseline) == 0 {
		first := spec.Matrix[0].Name
		baseline[first] = p.Variants[0].Values[first]
	}
	served := map[int]int{}
	for i := range p.Variants {
		wanted := maps.Clone(p.Variants[i].Values)
		maps.Copy(wanted, baseline)
		p.Variants[i].Baseline = slices.IndexFunc(p.Variants, func(v Variant) bool {
			return maps.Equal(v.Values, wanted)
		})
		served[p.Variants[i].Baseline]++
	}
	switch most := slices.Max(slices.Collect(maps.Values(served))) - 1; {
	case spec.Compare.BaselineRepeats != nil:
		p.BaselineRepeats = int(*spec.Compare.BaselineRepeats)
	case most >= manyCells:
		p.BaselineRepeats = 2
	default:
		p.BaselineRepeats = 1
	}
	return nil
}

// Compares returns a Problem where nothing would be compared: no cell has another baseline than
// itself, and there is no earlier run. That is right only for the first run of a schedule.
func (p *Plan) Compares(earlier bool) error {
	if earlier {
		return nil
	}
	for i := range p.Variants {
		if p.Variants[i].Baseline != i {
			return nil
		}
	}
	return problem.Invalid(
		"spec.matrix: there is one cell, and nothing to compare it with: add values, or set compareTo")
}

// field begins a field of a spec in a message.
var field = regexp.MustCompile(`(^|[^.\w])spec\.`)

// InTemplate names the fields of an experiment in a Problem as those of the template of a schedule.
func InTemplate(err error) error {
	found, other := problem.From(err)
	if found != nil && other == nil {
		within := *found
		within.Message = field.ReplaceAllString(found.Message, "${1}spec.template.spec.")
		return &within
	}
	return err
}

// manyCells is with how many cells a baseline runs twice in a round, see docs/statistics.md.
const manyCells = 5

// valuesOf are the names of a parameter's values.
func (p *Plan) valuesOf(parameter string) []string {
	var names []string
	for _, v := range p.Variants {
		name := v.Values[parameter]
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
