// Command kinds writes what the pages of a folder say of each kind of fault, between markers: from
// internal/fault/declared, the injectors' traits, and the page of the kind, of which it takes the
// first sentence.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/rights"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: kinds FOLDER (docs)")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "kinds: %v\n", err)
		os.Exit(1)
	}
}

func run(folder string) error {
	list, err := kinds(folder)
	if err != nil {
		return err
	}
	for page, parts := range map[string]map[string]string{
		"redisfault.md": {"list": list},
		"security.md":   {"roles": roles(), "node roles": optionalRoles(), "needs": needs()},
	} {
		path := filepath.Join(folder, page)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for name, part := range parts {
			if text, err = replaced(text, name, part); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// replaced is a page with another text between the markers of a part.
func replaced(page []byte, name, part string) ([]byte, error) {
	between := regexp.MustCompile(`(?s)(<!-- kinds, ` + name + `: begin[^\n]*\n).*?(<!-- kinds, ` +
		name + `: end -->)`)
	if n := len(between.FindAll(page, -1)); n != 1 {
		return nil, fmt.Errorf("there are %d pairs of markers of %s", n, name)
	}
	return between.ReplaceAll(page, []byte("${1}"+strings.ReplaceAll(part, "$", "$$")+"${2}")), nil
}

// kinds are the kinds with what each does, and whether that lasts.
func kinds(folder string) (string, error) {
	t := table{head: "| type | lasts | what it does |\n| --- | --- | --- |\n"}
	for _, k := range declared.All {
		page := "faults/" + k.Name() + ".md"
		if k.Engine == v1alpha1.EngineChaosMesh { // they have one page
			page = "faults/chaosmesh.md"
		}
		does, err := firstSentence(filepath.Join(folder, page))
		if err != nil {
			return "", err
		}
		lasts := "no"
		if fault.TraitsOf(&v1alpha1.RedisFaultSpec{
			Engine:   k.Engine,
			Action:   v1alpha1.Action{Type: k.Type},
			Duration: &metav1.Duration{Duration: time.Minute},
		}).Stays() {
			lasts = "yes"
		}
		t.add("["+title(&k)+"]("+page+")", lasts+" | "+does)
	}
	return t.text(), nil
}

// firstSentence is that of a page, below its title.
func firstSentence(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	_, body, _ := strings.Cut(string(text), "\n\n")
	paragraph, _, _ := strings.Cut(body, "\n\n")
	sentence, _, ended := strings.Cut(strings.ReplaceAll(paragraph, "\n", " ")+" ", ". ")
	if !ended || strings.Contains(sentence, "](.") || strings.Contains(sentence, "|") {
		return "", fmt.Errorf(
			"%s: the page must begin with a sentence for the list of kinds, without relative links: %q",
			path, sentence)
	}
	return sentence + ".", nil
}

// roles are the operator's roles for kinds that are on by default, and the kinds that need none.
func roles() string {
	t := table{head: "| role | grants in addition |\n| --- | --- |\n"}
	var none []string
	for _, k := range declared.All {
		switch {
		case len(k.Grants) == 0:
			none = append(none, string(k.Type))
		case k.Component == "":
			t.add("`"+rights.Prefix+k.RoleName(false)+"`", grants(k.On(false)))
		}
	}
	last := len(none) - 1
	return t.text() + "\n" + strings.Join(none[:last], ", ") + " and " + none[last] +
		" need no more.\n"
}

// optionalRoles are the roles for kinds that an administrator switches on.
func optionalRoles() string {
	t := table{head: "| role | component | grants |\n| --- | --- | --- |\n"}
	for _, k := range declared.All {
		if k.Component == "" {
			continue
		}
		for _, cluster := range []bool{false, true} {
			if on := k.On(cluster); len(on) > 0 {
				t.add("`"+rights.Prefix+k.RoleName(cluster)+"`", "`"+k.Component+"` | "+grants(on))
			}
		}
	}
	return t.text()
}

// needs are what users need.
func needs() string {
	t := table{head: "| type | needs |\n| --- | --- |\n"}
	for _, k := range declared.All {
		var all conditional
		for _, need := range k.Needs {
			all.add(need.String(), need.Unless)
		}
		t.add(title(&k), all.text())
	}
	return t.text()
}

// title is the type, with the engine where that is not Redquake and another has the type, too.
func title(k *declared.Kind) string {
	if k.Role != "" {
		return string(k.Type) + " by Chaos Mesh"
	}
	return string(k.Type)
}

func grants(list []rights.Grant) string {
	var all conditional
	for _, g := range list {
		all.add(rights.Right{
			Verb:     strings.Join(g.Verbs, ", "),
			Group:    g.Group,
			Resource: g.Resource,
		}.String(), g.Unless)
	}
	return all.text()
}

// conditional are texts, some of which do not hold with a setting: TestOneExceptionForEachKind.
type conditional struct {
	always, sometimes []string
	unless            *rights.Setting
}

func (c *conditional) add(text string, unless *rights.Setting) {
	if unless == nil {
		c.always = append(c.always, text)
		return
	}
	c.sometimes, c.unless = append(c.sometimes, text), unless
}

func (c *conditional) text() string {
	var parts []string
	if len(c.always) > 0 {
		parts = append(parts, strings.Join(c.always, ", "))
	}
	if c.unless != nil {
		field := c.unless.Field[len(c.unless.Field)-1]
		when := fmt.Sprintf("unless `%s: %s`", field, c.unless.Value)
		if c.unless.Value == "" {
			when = fmt.Sprintf("with `%s`", field)
		}
		parts = append(parts, strings.Join(c.sometimes, ", ")+", "+when)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}

// table has rows by what they say: names of which the same is said share one.
type table struct {
	head string
	rows []row
}

type row struct {
	names []string
	says  string
}

func (t *table) add(name, says string) {
	at := slices.IndexFunc(t.rows, func(r row) bool { return r.says == says })
	if at < 0 {
		at, t.rows = len(t.rows), append(t.rows, row{says: says})
	}
	t.rows[at].names = append(t.rows[at].names, name)
}

func (t *table) text() string {
	text := t.head
	for _, r := range t.rows {
		text += "| " + strings.Join(r.names, ", ") + " | " + r.says + " |\n"
	}
	return text
}
