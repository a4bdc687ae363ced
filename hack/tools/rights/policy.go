package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/redquake/redquake/internal/rights"
)

//go:embed policy.yaml.tmpl
var policyTemplate string

// policy is a ValidatingAdmissionPolicy: whoever creates an object of the resource must have its rights.
type policy struct {
	Resource string
	Subject  string // CEL: the start of the message
	Kinds    []string
	Checks   []check
	Secrets  []string // CEL: fields with names of Secrets
}

// check is a right, and when it is needed.
type check struct {
	When    string // CEL; "" = always
	Allowed string // CEL
	Text    string // CEL: the right as the message names it
}

func policies() []policy {
	return []policy{
		{
			Resource: "redisfaults", Subject: "'type ' + object.spec.action.type + '", Kinds: kinds(),
			Checks: append(checks(), jobs("!has(object.spec.loadTestRef)", "for the probe load that a fault without loadTestRef creates")), Secrets: secrets("redisfaults"),
		},
		{
			Resource: "redisloadtests", Subject: "'a load test", Checks: []check{jobs("", "for the load pods")}, Secrets: secrets("redisloadtests"),
		},
	}
}

func (p policy) manifest() ([]byte, error) {
	text, err := template.New("policy").Funcs(template.FuncMap{"quoted": quoted}).Parse(policyTemplate)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = text.Execute(&out, p)
	return out.Bytes(), err
}

// kindOf is a kind as the policy's variable holds it.
func kindOf(f rights.Fault) string { return string(f.Engine) + " " + string(f.Type) }

func kinds() []string {
	var all []string
	for _, f := range rights.Faults {
		all = append(all, kindOf(f))
	}
	return all
}

// checks has one check for each right that a kind of fault needs of its user.
func checks() []check {
	var all []check
	var known []rights.Right
	for _, fault := range rights.Faults {
		for _, need := range fault.Needs {
			if !slices.Contains(known, need.Right) {
				known = append(known, need.Right)
				all = append(all, check{When: when(need.Right), Allowed: allowed(need), Text: text(need)})
			}
		}
	}
	return all
}

// when is the condition under which a fault needs a right of its user.
func when(r rights.Right) string {
	var always, conditions []string
	for _, fault := range rights.Faults {
		for _, need := range fault.Needs {
			switch {
			case need.Right != r:
			case need.Unless == "":
				always = append(always, kindOf(fault))
			default:
				conditions = append(conditions, fmt.Sprintf("variables.kind == '%s' && !(%s)", kindOf(fault), need.Unless))
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
	return check{When: when, Allowed: allowed(need), Text: text(need) + fmt.Sprintf(" + ' (%s)'", reason)}
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
	if !r.Cluster {
		text += ".namespace(request.namespace)"
	}
	return text + fmt.Sprintf(".check('%s').allowed()", r.Verb)
}

func text(need rights.Need) string {
	text := need.Right.String()
	if need.Or != nil {
		text += " or " + need.Or.String()
	}
	if need.Cluster {
		return "'" + text + "'"
	}
	return fmt.Sprintf("'%s in namespace ' + request.namespace", text)
}

// secrets are the fields with names of Secrets, as CEL: optional members of a list.
func secrets(resource string) []string {
	var all []string
	for _, path := range rights.Secrets[resource] {
		field := "object.spec.?" + strings.ReplaceAll(path, ".", ".?") + ".?name"
		if !strings.Contains(path, "[]") {
			all = append(all, field)
			continue
		}
		for i := range rights.MostItems {
			all = append(all, strings.ReplaceAll(field, "[]", fmt.Sprintf("[?%d]", i)))
		}
	}
	return all
}

func quoted(list []string) string { return "'" + strings.Join(list, "', '") + "'" }

// harmless are the fields of a spec that anybody may change who may change the object: none lets it do more. suspend is checked where it is reset.
var harmless = []string{"abort", "suspend", "ttlSecondsAfterFinished"}

// Harmless is harmless as the members of a CEL list.
func (policy) Harmless() string { return quoted(harmless) }
