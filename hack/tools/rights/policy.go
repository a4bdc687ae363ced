package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/rights"
)

//go:embed policy.yaml.tmpl
var policyTemplate string

// policy is a ValidatingAdmissionPolicy: whoever creates an object of the resource must have its
// rights.
type policy struct {
	Resource string
	// the fields of a spec that anybody may change who may change the object: none lets it do more
	Harmless  []string
	Variables []variable
	Checks    []check
}

// variable is a CEL expression that the checks use.
type variable struct{ Name, Expression string }

// check is what must hold, and when.
type check struct {
	When    string // CEL; "" = always
	Allowed string // CEL
	Message string // CEL
}

func policies() []policy {
	probe := "!has(object.spec.loadTestRef)"
	return []policy{
		{
			Resource: "redisfaults",
			Harmless: harmless,
			Variables: append([]variable{kindVariable, secretsVariable("redisfaults")},
				words("'type ' + object.spec.action.type + '")...),
			Checks: slices.Concat([]check{known()}, checks(),
				[]check{jobs(probe, "for the probe load that a fault without loadTestRef creates")},
				secretChecks(len(secrets("redisfaults")))),
		},
		{
			Resource:  "redisloadtests",
			Harmless:  harmless,
			Variables: append([]variable{secretsVariable("redisloadtests")}, words("'a load test")...),
			Checks: append([]check{jobs("", "for the load pods")},
				secretChecks(len(secrets("redisloadtests")))...),
		},
		ofExperiments(),
		ofSchedules(),
	}
}

func (p policy) manifest() ([]byte, error) {
	text, err := template.New("policy").Parse(policyTemplate)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = text.Execute(&out, p)
	return out.Bytes(), err
}

var kindVariable = variable{
	"kind",
	"object.spec.?engine.orValue('Native') + ' ' + object.spec.action.type",
}

func secretsVariable(resource string) variable {
	return variable{"secrets", block("[\n?" + strings.Join(secrets(resource), ",\n?") + "\n]")}
}

// words are the parts of a message, around the right. subject begins a text in quotes.
func words(subject string) []variable {
	return []variable{
		{"needs", fmt.Sprintf(`"%s needs the permission to '"`, subject)},
		lacks,
	}
}

var lacks = variable{"lacks", `"', which user ' + request.userInfo.username + ' does not have'"`}

// block is an expression of several lines as YAML has it in the list of variables.
func block(expression string) string {
	return ">-\n      " + strings.ReplaceAll(expression, "\n", "\n      ")
}

// kindOf is a kind as the policy's variable holds it.
func kindOf(f *declared.Kind) string {
	return string(f.Engine) + " " + string(f.Type)
}

func kinds() []string {
	var all []string
	for _, kind := range declared.All {
		all = append(all, kindOf(&kind))
	}
	return all
}

// known refuses kinds of which the policy does not know what they do.
func known() check {
	return check{
		Allowed: "variables.kind in [" + quoted(kinds()) + "]",
		Message: unknown("variables.kind"),
	}
}

func unknown(kind string) string {
	return fmt.Sprintf(
		`"'this policy does not know what a fault of ' + %s + ' does: install the one of the same version as the CRDs'"`,
		kind)
}

// needs are the rights that kinds of faults need of their users, each once.
func needs() []rights.Need {
	var all []rights.Need
	for _, kind := range declared.All {
		for _, need := range kind.Needs {
			if !slices.ContainsFunc(all, func(n rights.Need) bool { return n.Right == need.Right }) {
				all = append(all, need)
			}
		}
	}
	return all
}

// checks has one check for each right that a kind of fault needs of its user.
func checks() []check {
	var all []check
	for _, need := range needs() {
		all = append(all, check{
			When:    when(need.Right),
			Allowed: allowed(need),
			Message: lacking("variables.needs", text(need)),
		})
	}
	return all
}

// when is the condition under which a fault needs a right of its user.
func when(r rights.Right) string {
	var always, conditions []string
	for _, kind := range declared.All {
		for _, need := range kind.Needs {
			switch {
			case need.Right != r:
			case need.Unless == nil:
				always = append(always, kindOf(&kind))
			default:
				conditions = append(conditions,
					fmt.Sprintf("variables.kind == '%s' && !(%s)", kindOf(&kind),
						need.Unless.Holds("object.spec.action")))
			}
		}
	}
	if len(always) > 0 {
		conditions = append([]string{"variables.kind in [" + quoted(always) + "]"}, conditions...)
	}
	return strings.Join(conditions, " || ")
}

// jobs is the check of the right to run load pods.
func jobs(when, reason string) check {
	need := rights.Need{Right: rights.RunJobs}
	return check{
		When:    when,
		Allowed: allowed(need),
		Message: lacking("variables.needs", text(need)+fmt.Sprintf(" + ' (%s)'", reason)),
	}
}

// lacking is the message about a right that the user does not have. needs is its beginning.
func lacking(needs, right string) string {
	return needs + " + " + right + " + variables.lacks"
}

func allowed(need rights.Need) string {
	condition := ask(need.Right)
	if need.Or != nil {
		condition = fmt.Sprintf("(%s || %s)", condition, ask(*need.Or))
	}
	return condition
}

// ask is the question to the API server's authorizer whether the user of the request has a right.
func ask(r rights.Right) string {
	resource, subresource := r.Parts()
	text := fmt.Sprintf("authorizer.group('%s').resource('%s')", r.Group, resource)
	if subresource != "" {
		text += fmt.Sprintf(".subresource('%s')", subresource)
	}
	if !r.Anywhere() {
		text += ".namespace(request.namespace)"
	}
	return text + fmt.Sprintf(".check('%s').allowed()", r.Verb)
}

func text(need rights.Need) string {
	if need.Anywhere() {
		return "'" + need.String() + "'"
	}
	return fmt.Sprintf("'%s in namespace ' + request.namespace", need)
}

// secrets are the fields with names of Secrets, as CEL: optional members of a list.
func secrets(resource string) []string {
	var all []string
	for _, path := range rights.Secrets[resource] {
		for _, item := range items(path) {
			all = append(all, optional("object.spec", item)+".?name")
		}
	}
	return all
}

// items are a path for each item that its list can have.
func items(path string) []string {
	if !strings.Contains(path, "[]") {
		return []string{path}
	}
	var all []string
	for i := range rights.MostItems {
		all = append(all, strings.ReplaceAll(path, "[]", fmt.Sprintf("[%d]", i)))
	}
	return all
}

// optional is a field as CEL, none if it or a field around it is absent.
func optional(of, path string) string {
	return of + ".?" + strings.ReplaceAll(strings.ReplaceAll(path, ".", ".?"), "[", "[?")
}

// secretChecks ask for each of the Secrets of a list that has at most so many.
func secretChecks(most int) []check {
	var all []check
	for i := range most {
		name := fmt.Sprintf("variables.secrets[%d]", i)
		all = append(all, check{
			Allowed: fmt.Sprintf(
				"variables.secrets.size() <= %d ||\n      "+
					"authorizer.group('').resource('secrets').namespace(request.namespace).name(%s).check('get').allowed()",
				i, name),
			Message: lacking("variables.needs",
				fmt.Sprintf("'get secret ' + %s + ' in namespace ' + request.namespace", name)),
		})
	}
	return all
}

func quoted(list []string) string {
	return "'" + strings.Join(list, "', '") + "'"
}

// harmless are the fields of what runs and ends that let it do no more. suspend is checked where it
// is reset.
var harmless = []string{"abort", "suspend", "ttlSecondsAfterFinished"}

// MayChange is Harmless as the members of a CEL list.
func (p policy) MayChange() string {
	return quoted(p.Harmless)
}

// Operator is the question whether the user of the request is the operator.
func (policy) Operator() string {
	return ask(rights.ActForOthers)
}
