package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/template"
	"text/template/parse"
)

// maxBody is the longest body of a notification, and the longest result of a function of its
// template, in bytes.
const maxBody = 64 << 10

// DefaultTemplate is the body for Slack's incoming webhooks, and for those of Mattermost and others
// that take the same.
const DefaultTemplate = `{"text": {{json (slack .Text)}}}`

// errTooLong is a body without an end.
var errTooLong = fmt.Errorf("it is longer than %d bytes", maxBody)

// Template makes the body of a notification. What it can cost is bounded: it has no templates of
// its own and repeats nothing.
type Template struct{ parsed *template.Template }

// functions are all functions of a template besides the comparisons. Those of the standard library
// that make long texts of short ones are absent.
var functions = template.FuncMap{"json": encoded, "slack": escaped}

// builtin are the functions of the standard library that a template may use.
var builtin = map[string]bool{
	"and": true,
	"or":  true,
	"not": true,
	"eq":  true,
	"ne":  true,
	"lt":  true,
	"le":  true,
	"gt":  true,
	"ge":  true,
	"len": true,
}

// Parse returns the template of a text in the format of Go's text/template; "" is DefaultTemplate.
// It executes it once: the error is what is wrong, with the line, also if the body would be JSON
// for some values only.
func Parse(text string) (*Template, error) {
	if text == "" {
		text = DefaultTemplate
	}
	parsed, err := template.New("template").Funcs(functions).Parse(text)
	if err != nil {
		return nil, withoutName(err)
	}
	if len(parsed.Templates()) > 1 || parsed.Tree == nil {
		return nil, errors.New("define and block are not supported")
	}
	if err := permitted(parsed.Root); err != nil {
		return nil, err
	}
	t := &Template{parsed}
	plain, err := t.Body(example("word"))
	if err != nil {
		return nil, err
	}
	hard, err := t.Body(example(`a "word"` + "\n"))
	if err != nil {
		return nil, err
	}
	if json.Valid(plain) && !json.Valid(hard) {
		return nil, errors.New(
			`it is no JSON if a value has quotes or line ends: write {{json .Text}} instead of "{{.Text}}"`)
	}
	return t, nil
}

// Body is the body of a notification, at most 64 KiB.
func (t *Template) Body(m Message) ([]byte, error) {
	var out bytes.Buffer
	if err := t.parsed.Execute(&limited{&out}, m); err != nil {
		return nil, withoutName(err)
	}
	return out.Bytes(), nil
}

// permitted refuses what could take long, or need much memory.
func permitted(node parse.Node) error {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, child := range n.Nodes {
			if err := permitted(child); err != nil {
				return err
			}
		}
	case *parse.ActionNode:
		return permittedPipe(n.Pipe)
	case *parse.IfNode:
		return permittedBranch(&n.BranchNode)
	case *parse.WithNode:
		return permittedBranch(&n.BranchNode)
	case *parse.RangeNode:
		return fmt.Errorf("line %d: range is not supported: no field is a list", n.Line)
	case *parse.TemplateNode:
		return fmt.Errorf("line %d: template is not supported", n.Line)
	}
	return nil
}

func permittedBranch(n *parse.BranchNode) error {
	return errors.Join(permittedPipe(n.Pipe), permitted(n.List), permitted(n.ElseList))
}

func permittedPipe(pipe *parse.PipeNode) error {
	for _, command := range pipe.Cmds {
		for _, argument := range command.Args {
			if chain, ok := argument.(*parse.ChainNode); ok {
				argument = chain.Node
			}
			switch a := argument.(type) {
			case *parse.IdentifierNode:
				if functions[a.Ident] == nil && !builtin[a.Ident] {
					return fmt.Errorf("line %d: function %s is not supported", pipe.Line, a.Ident)
				}
			case *parse.PipeNode:
				if err := permittedPipe(a); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// encoded is function json: a value as JSON.
func encoded(value any) (string, error) {
	text, err := json.Marshal(value)
	if err == nil && len(text) > maxBody {
		err = errTooLong
	}
	return string(text), err
}

// escaped is function slack: a text in which nothing is a link or a mention.
func escaped(text string) (string, error) {
	text = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
	if len(text) > maxBody {
		return "", errTooLong
	}
	return text, nil
}

// limited fails when it becomes too long.
type limited struct{ out *bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.out.Len()+len(p) > maxBody {
		return 0, errTooLong
	}
	return l.out.Write(p)
}

// withoutName is an error of a template without its name.
func withoutName(err error) error {
	wrote, ok := errors.AsType[template.ExecError](err)
	if ok && errors.Is(wrote.Err, errTooLong) {
		return errTooLong
	}
	text := strings.TrimPrefix(err.Error(), "template: template:")
	first, rest, found := strings.Cut(text, ": executing \"template\" at ")
	if found {
		text = first + ": at " + rest
	}
	return errors.New("line " + text)
}

var _ io.Writer = &limited{}
