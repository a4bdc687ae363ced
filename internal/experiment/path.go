package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"

	"github.com/redquake/redquake/internal/analysis/compare"
)

// maxValue is the longest text of a value.
const maxValue = 1024

// set sets the field at a path of a spec, and decodes the result into a spec of the same type. The
// error says what is wrong, without the field of the experiment that asked for it, and without the
// value, which may be a secret.
func set[T any](spec *T, path string, value intstr.IntOrString) (*T, error) {
	steps := strings.Split(path, ".")
	kind, err := typeAt(reflect.TypeFor[T](), steps)
	if err != nil {
		return nil, err
	}
	v, err := jsonOf(kind, value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	var tree any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &tree); err != nil {
		return nil, err
	}
	if tree, err = put(tree, steps, v); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if text, err = json.Marshal(tree); err != nil {
		return nil, err
	}
	changed := new(T)
	switch strict, err := kjson.UnmarshalStrict(text, changed); {
	case err != nil:
		return nil, fmt.Errorf("%s: the field does not take such a value (it is %s)", path,
			described(kind))
	case len(strict) > 0:
		return nil, fmt.Errorf("%s: %w", path, strict[0])
	}
	return changed, nil
}

// described is what a field is.
func described(kind reflect.Type) string {
	switch {
	case kind == reflect.TypeFor[metav1.Duration]():
		return "a duration, such as 30s"
	case kind == reflect.TypeFor[resource.Quantity]():
		return "a quantity, such as 500m or 1Gi"
	case isText(kind):
		return "a text"
	}
	switch kind.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a number"
}

// typeAt is the type of the field at a path.
func typeAt(of reflect.Type, steps []string) (reflect.Type, error) {
	for i, step := range steps {
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		at := strings.Join(steps[:i], ".")
		switch {
		case isText(of):
			return nil, fmt.Errorf("%s has no fields", at)
		case of.Kind() == reflect.Struct:
			fields := fieldsOf(of)
			next, ok := fields[step]
			if !ok {
				return nil, fmt.Errorf("there is no field %s%s: %s", step, within(at), listed(fields))
			}
			of = next
		case of.Kind() == reflect.Slice:
			if n, err := strconv.Atoi(step); err != nil || n < 0 {
				return nil, fmt.Errorf("%s is a list: an item is named by its position, from 0, and not %s", at,
					step)
			}
			of = of.Elem()
		case of.Kind() == reflect.Map:
			of = of.Elem()
		default:
			return nil, fmt.Errorf("%s has no fields", at)
		}
	}
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of, nil
}

func within(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}

func listed(fields map[string]reflect.Type) string {
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return "it has " + strings.Join(names, ", ")
}

// fieldsOf are the fields of a struct by their names in JSON.
func fieldsOf(of reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range of.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && strings.Contains(options, "inline"):
			for n, t := range fieldsOf(f.Type) {
				fields[n] = t
			}
		case name != "" && name != "-":
			fields[name] = f.Type
		}
	}
	return fields
}

// isText reports whether a type is a text in JSON.
func isText(of reflect.Type) bool {
	return of.Kind() == reflect.String || of == reflect.TypeFor[metav1.Duration]() ||
		of == reflect.TypeFor[resource.Quantity]() || of == reflect.TypeFor[metav1.Time]()
}

// jsonOf is a value as a field of a type takes it.
func jsonOf(of reflect.Type, value intstr.IntOrString) (any, error) {
	text := value.String()
	if len(text) > maxValue {
		return nil, fmt.Errorf("a value has %d characters, more than %d", len(text), maxValue)
	}
	if value.Type == intstr.String && text == "null" {
		return nil, nil
	}
	if isText(of) {
		return text, nil
	}
	if of == reflect.TypeFor[intstr.IntOrString]() {
		return value, nil
	}
	var v any
	err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &v)
	if err != nil {
		return nil, errors.New(
			"the value is no JSON, which a field that is neither a text nor a number needs")
	}
	return v, nil
}

// put sets a value in a tree of JSON; nil removes a field.
func put(tree any, steps []string, v any) (any, error) {
	if len(steps) == 0 {
		return v, nil
	}
	step, rest := steps[0], steps[1:]
	if list, ok := tree.([]any); ok {
		return putItem(list, step, rest, v)
	}
	fields, is := tree.(map[string]any)
	if !is {
		position, err := strconv.Atoi(step)
		if err == nil && tree == nil {
			return putItem(nil, strconv.Itoa(position), rest, v)
		}
		fields = map[string]any{}
	}
	below, err := put(fields[step], rest, v)
	if err != nil {
		return nil, err
	}
	if below == nil {
		delete(fields, step)
	} else {
		fields[step] = below
	}
	return fields, nil
}

func putItem(list []any, step string, rest []string, v any) (any, error) {
	position, err := strconv.Atoi(step)
	if err != nil || position > len(list) {
		return nil, fmt.Errorf("the list has %d items: %s is none of their positions, nor the next",
			len(list), step)
	}
	var old any
	if position < len(list) {
		old = list[position]
	}
	item, err := put(old, rest, v)
	switch {
	case err != nil:
		return nil, err
	case item == nil && position < len(list):
		return slices.Delete(list, position, position+1), nil
	case item == nil:
		return list, nil
	case position == len(list):
		return append(list, item), nil
	}
	list[position] = item
	return list, nil
}

// Slot is a run's place in an experiment.
type Slot struct {
	Number  int // from 1, in the order in which they run
	Round   int // from 1
	Variant int // its position in Plan.Variants
}

// runsPerRound is how many runs a round has.
func (p *Plan) runsPerRound() int {
	n := 0
	for i := range p.Variants {
		n += p.repeats(i)
	}
	return n
}

// repeats is how often a variant runs in a round.
func (p *Plan) repeats(variant int) int {
	if p.Variants[variant].Baseline == variant {
		return p.BaselineRepeats
	}
	return 1
}

// Runs is how many runs the experiment has.
func (p *Plan) Runs() int {
	return p.Repeat * p.runsPerRound()
}

// Slot is the place of a run: the same for the same seed.
func (p *Plan) Slot(number int, seed int64) Slot {
	perRound := p.runsPerRound()
	round, position := (number-1)/perRound, (number-1)%perRound
	var order []int
	for repeat := range p.BaselineRepeats {
		for i := range p.Variants {
			if repeat < p.repeats(i) {
				order = append(order, i)
			}
		}
	}
	if p.Shuffled {
		random := rand.New(rand.NewPCG(uint64(seed), uint64(round)))
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	return Slot{
		Number:  number,
		Round:   round + 1,
		Variant: order[position],
	}
}

// Delay is the random delay of a run's n-th fault, up to a limit: the same for the same seed.
func Delay(seed int64, number, fault int, limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	random := rand.New(rand.NewPCG(uint64(seed), 1<<32|uint64(number)<<8|uint64(fault)))
	return time.Duration(random.Int64N(int64(limit) + 1)).Round(time.Millisecond)
}

// withinWaits is what is told of a cell and its baseline. A load generator that waits for a CPU
// makes latencies greater, by an unknown part: a difference is only told if it holds whatever that
// part was. So is that there is none, where the two waited for different shares of the time.
func withinWaits(
	comparison compare.Comparison, f compare.Figure, c, baseline Cell,
	tell func(c, baseline Cell) compare.Comparison,
) compare.Comparison {
	comparison.Late, comparison.BaselineLate = lateOf(c, f), lateOf(baseline, f)
	differs := comparison.Verdict == compare.Better || comparison.Verdict == compare.Worse
	if max(comparison.Late, comparison.BaselineLate) == 0 ||
		!differs && !lateApart(f, comparison.Late, comparison.BaselineLate) {
		return comparison
	}
	return comparison.Within(tell(c.atLeast(f), baseline), tell(c, baseline.atLeast(f)))
}

// lateApart reports whether so many more requests may be late in one cell than in another that a
// quantile can differ for that: half of its tail.
func lateApart(f compare.Figure, late, other float64) bool {
	return f.Tail > 0 && 2*math.Abs(late-other) >= f.Tail
}

// lateOf is for which share of the requests of a cell a figure may be greater as the load generator
// waited for a CPU: the mean of the runs, so that a few of them count.
func lateOf(c Cell, f compare.Figure) float64 {
	sum, n := 0.0, 0
	for _, r := range c.Runs {
		if v, ok := r.Values[f.Name]; ok && r.Inconclusive == "" {
			sum, n = sum+v.Late, n+1
		}
	}
	return sum / float64(max(1, n))
}

// atLeast is a cell of which a figure is as small as it can have been.
func (c Cell) atLeast(f compare.Figure) Cell {
	c.Runs = slices.Clone(c.Runs)
	for i := range c.Runs {
		if v := c.Runs[i].Values[f.Name]; v.Late > 0 {
			c.Runs[i].Values = map[string]Value{f.Name: v.AtLeast(f)}
		}
	}
	return c
}

// AtLeast is the least that a figure can have been.
func (v Value) AtLeast(f compare.Figure) Value {
	if v.Late == 0 {
		return v
	}
	return Value{Value: max(v.Least, f.Floor), Censored: v.Censored}
}

// replaced are cells, those of some names with others.
func replaced(cells []Cell, by ...Cell) []Cell {
	cells = slices.Clone(cells)
	for i := range cells {
		for _, o := range by {
			if o.Name == cells[i].Name {
				cells[i] = o
			}
		}
	}
	return cells
}
