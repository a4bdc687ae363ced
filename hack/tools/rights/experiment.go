package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/rights"
)

// ofExperiments is the policy of experiments.
func ofExperiments() policy {
	return experiments("spec", policy{Resource: "redisexperiments", Harmless: harmless})
}

// ofSchedules is that of schedules: it asks for all that their runs will do, as the operator
// creates these.
func ofSchedules() policy {
	return experiments("spec.template.spec", policy{
		Resource: "redisexperimentschedules",
		Harmless: []string{"suspend"},
		Variables: []variable{
			{"ofSchedule", block(references("object.spec", "'spec.", rights.OfSchedule))},
		},
		Checks: []check{{
			Allowed: ask(rights.CreateExperiments),
			Message: `"` + lacking("'spec.template"+need,
				text(rights.Need{Right: rights.CreateExperiments})) + `"`,
		}},
	})
}

// experiments adds to a policy what the specification of an experiment needs, which is in a field
// such as spec: whoever creates one needs the rights for its load tests and for all that it does to
// Redis, be it by a fault or by a setting. What a parameter sets is not known here, but the fields:
// no parameter sets what a fault is (the CRD refuses its path), none makes a fault need more (a
// fault has an exception only if no parameter is about it), and one that may name a Secret needs
// the right to get any.
func experiments(field string, p policy) policy {
	spec, at := "object."+field, "'"+field+"."
	lists := "variables.ofTemplate"
	for _, v := range p.Variables {
		lists += " + variables." + v.Name
	}
	p.Variables = slices.Concat(p.Variables, []variable{
		// CEL has no case-insensitive comparison, and a path is never right in another case: what is
		// refused here need not be known there.
		{
			"parameters",
			block(spec +
				".matrix.filter(p, has(p.path)).map(p, {'name': string(p.name), 'path': p.path.lowerAscii()})"),
		},
		{"anySecret", block(setsSecrets(at))},
		{
			"actions",
			block(strings.Join(append([]string{faultActions(spec, at)}, settingActions(spec, at)...),
				" +\n")),
		},
		{
			"ofTemplate",
			block(references(spec+".template.spec", at+"template.spec.", rights.Secrets["redisloadtests"])),
		},
		{
			"ofFaults",
			block(spec + ".?faults.orValue([]).map(f, " +
				references("f.spec", at+"faults[' + f.name + '].spec.", rights.Secrets["redisfaults"]) + ")"),
		},
		{"named", block(flattened(lists))},
		// Each Secret once, with the first field that names it.
		{
			"secrets",
			block(
				"variables.named.filter(r, variables.named.filter(other, other.name == r.name)[0].needs == r.needs)"),
		},
		{"needs", `"` + at + "template" + need + `"`},
		lacks,
	})
	p.Checks = slices.Concat(
		[]check{
			{
				Allowed: "variables.actions.all(a, a.kind in [" + quoted(actionKinds()) + "])",
				Message: unknown("variables.actions.filter(a, !(a.kind in [" + quoted(actionKinds()) +
					"]))[0].kind"),
			},
		},
		p.Checks,
		[]check{
			mayCreate(rights.CreateLoadTests, "", "variables.needs"),
			jobs("", "for the load pods"),
			mayCreate(rights.CreateFaults, "variables.actions.size() > 0", "variables.actions[0].needs"),
		},
		actionChecks(),
		[]check{
			{
				When: "variables.anySecret.size() > 0", Allowed: ask(getSecrets.Right),
				Message: lacking("variables.anySecret[0]", text(getSecrets)),
			},
			{
				When:    fmt.Sprintf("variables.secrets.size() > %d", rights.MostNames),
				Allowed: ask(getSecrets.Right),
				Message: lacking(fmt.Sprintf("variables.secrets[%d].needs", rights.MostNames),
					text(getSecrets)+fmt.Sprintf(" + ' (the spec names more than %d)'", rights.MostNames)),
			},
		},
		namedChecks(),
	)
	return p
}

// getSecrets is the right to get any Secret.
var getSecrets = rights.Need{Right: rights.Right{Verb: "get", Resource: "secrets"}}

func mayCreate(r rights.Right, when, needs string) check {
	return check{
		When:    when,
		Allowed: ask(r),
		Message: lacking(needs, text(rights.Need{Right: r})),
	}
}

// need ends the part of a message that names the field.
const need = " needs the permission to '"

// setsSecrets are the messages about the parameters that set a field with the name of a Secret, one
// within it, or one around it. What follows faults.NAME is as in the spec of a fault. at begins a
// text in quotes: where the experiment's spec is.
func setsSecrets(at string) string {
	return "variables.parameters.filter(p, [" + quoted(rights.SecretPaths()) + "].exists(secret,\n" +
		"  [p.path.startsWith('faults.') ? p.path.substring(p.path.indexOf('.', 7) + 1) : p.path].exists(path,\n" +
		"  (secret + '.').startsWith(path + '.') || (path + '.').startsWith(secret + '.'))))\n" +
		"  .map(p, " + at + "matrix[' + p.name + '].path, which may set the name of a Secret," + need +
		")"
}

// faultActions are the faults of an experiment. Their kinds say with which setting they need less,
// unless a parameter is about that.
func faultActions(spec, at string) string {
	kind := "f.spec.?engine.orValue('Native') + ' ' + f.spec.action.type"
	for _, one := range declared.All {
		s := exceptionOf(kindOf(&one))
		if s == nil {
			continue
		}
		kind += fmt.Sprintf(
			" +\n  (f.spec.?engine.orValue('Native') == '%s' && f.spec.action.type == '%s' && %s &&\n"+
				"  !variables.parameters.exists(p, p.path.startsWith('faults.' + f.name + '.action.%s')) ? ' %s' : '')",
			one.Engine, one.Type, s.Holds("f.spec.action"), strings.ToLower(s.Field[0]), s.Word())
	}
	return spec + ".?faults.orValue([]).map(f, {'needs': " + at +
		"faults[' + f.name + ']: type ' + f.spec.action.type + '" + need + ",\n  'kind': " + kind + "})"
}

// settingActions are the settings of the matrix: for each kind, those of each parameter, by the
// first of its values that has one.
func settingActions(spec, at string) []string {
	var all []string
	for _, one := range declared.All {
		if one.Member == "" {
			continue
		}
		has := fmt.Sprintf("has(s.%s)", one.Member)
		kind := kindOf(&one)
		if s := exceptionOf(kind); s != nil {
			all = append(all, settingAction(spec, at, has+" && "+s.Holds("s"), one.Member, kind+" "+s.Word()))
			has += " && !(" + s.Holds("s") + ")"
		}
		all = append(all, settingAction(spec, at, has, one.Member, kind))
	}
	return all
}

func settingAction(spec, at, condition, field, kind string) string {
	return fmt.Sprintf(
		"%[1]s.matrix.filter(p, p.?settings.orValue([]).exists(s, %[3]s)).map(p, {'kind': '%[5]s', 'needs':\n"+
			"  %[2]smatrix[' + p.name + '].settings[' + p.settings.filter(s, %[3]s)[0].name + "+
			"'].%[4]s%[6]s})", spec, at, condition, field, kind, need)
}

// exceptionOf is the setting with which a kind needs less; nil = none.
func exceptionOf(kind string) *rights.Setting {
	for _, one := range declared.All {
		for _, right := range one.Needs {
			if kindOf(&one) == kind && right.Unless != nil {
				return right.Unless
			}
		}
	}
	return nil
}

// actionKinds are all kinds that actions can have.
func actionKinds() []string {
	all := kinds()
	for _, kind := range kinds() {
		if s := exceptionOf(kind); s != nil {
			all = append(all, kind+" "+s.Word())
		}
	}
	return all
}

// actionChecks has one check for each right that an action needs of its user.
func actionChecks() []check {
	var all []check
	for _, right := range needs() {
		which := "a, a.kind in [" + quoted(kindsThatNeed(right.Right)) + "]"
		all = append(all, check{
			When:    "variables.actions.exists(" + which + ")",
			Allowed: allowed(right),
			Message: lacking("variables.actions.filter("+which+")[0].needs", text(right)),
		})
	}
	return all
}

func kindsThatNeed(r rights.Right) []string {
	var all []string
	for _, one := range declared.All {
		for _, right := range one.Needs {
			if right.Right != r {
				continue
			}
			all = append(all, kindOf(&one))
			if s := exceptionOf(kindOf(&one)); s != nil && right.Unless == nil {
				all = append(all, kindOf(&one)+" "+s.Word())
			}
		}
	}
	return all
}

// references are the fields of a spec that name a Secret, with the name, as a list. prefix begins a
// text in quotes: where the spec is.
func references(spec, prefix string, paths []string) string {
	var all []string
	for _, path := range paths {
		for _, item := range items(path) {
			all = append(all, fmt.Sprintf("  ?%s.?name.optMap(n, {'name': string(n), 'needs': %s%s%s})",
				optional(spec, item), prefix, item, need))
		}
	}
	return "[\n" + strings.Join(all, ",\n") + "\n]"
}

// flattened is one list of all references. CEL cannot make one of a list of lists.
func flattened(all string) string {
	for i := range rights.MostItems {
		all += fmt.Sprintf(" + variables.ofFaults[?%d].orValue([])", i)
	}
	return all
}

func namedChecks() []check {
	var all []check
	for i := range rights.MostNames {
		secret := fmt.Sprintf("variables.secrets[%d]", i)
		all = append(all, check{
			Allowed: fmt.Sprintf(
				"variables.secrets.size() <= %d ||\n      "+
					"authorizer.group('').resource('secrets').namespace(request.namespace).name(%s.name).check('get').allowed()",
				i, secret),
			Message: lacking(secret+".needs",
				fmt.Sprintf("'get secret ' + %s.name + ' in namespace ' + request.namespace", secret)),
		})
	}
	return all
}
