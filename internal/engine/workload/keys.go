package workload

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Keyed is a workload of the user's own commands: which of their words are keys is known by the
// server.
type Keyed interface {
	Redis
	// FindKeys routes each command by the first key that find returns for it. It must be called before
	// Source. find gets a command with values for its placeholders, and returns its keys in order, or
	// false where the server does not say: then a guess remains. The error is find's, or *CrossSlot.
	FindKeys(find func(words []string) (keys []string, known bool, err error)) error
}

// CrossSlot is the error of a command whose keys are in different slots, which no cluster serves.
type CrossSlot struct {
	Operation string
	Keys      []string // of an example
}

func (e *CrossSlot) Error() string {
	return fmt.Sprintf("the keys of %q are in different slots, as %q of one request: a cluster refuses "+
		"that (CROSSSLOT); give them the same part in braces, as {{key}}:a and {{key}}:b", e.Operation, e.Keys)
}

// word is one word of a command.
type word struct {
	tmpl *resp.Template
}

func compileWord(text, prefix string) (*word, error) {
	t, err := resp.Compile([]string{text}, prefix)
	if err != nil {
		return nil, err
	}
	return &word{t}, nil
}

func compileWords(texts []string, prefix string) ([]*word, error) {
	var words []*word
	for _, text := range texts {
		w, err := compileWord(text, prefix)
		if err != nil {
			return nil, err
		}
		words = append(words, w)
	}
	return words, nil
}

// append appends the word to dst, and returns its bytes in it.
func (w *word) append(dst []byte, a *resp.Args) (all, text []byte) {
	from := len(dst) + len("*1\r\n$")
	dst = w.tmpl.Append(dst, a)
	encoded := dst[from:]
	return dst, encoded[bytes.IndexByte(encoded, '\n')+1 : len(encoded)-len("\r\n")]
}

// slot returns the slot of a key. It encodes the key into scratch and returns scratch for reuse.
func (w *word) slot(scratch []byte, a *resp.Args) (uint16, []byte) {
	scratch, key := w.append(scratch[:0], a)
	return topology.SlotOf(key), scratch
}

// guessKey returns the first word with {key}, otherwise the second word, which is the first key of
// nearly all commands; nil if there is none. A wrong guess costs each request a redirection.
func guessKey(texts []string, words []*word) *word {
	if len(texts) < 2 {
		return nil
	}
	at := 1 + max(0, slices.IndexFunc(texts[1:], func(w string) bool { return strings.Contains(w, "{key}") }))
	if strings.Contains(texts[at], "{value}") {
		return nil // ECHO {value}: no key
	}
	return words[at]
}

// examples are values of the placeholders by which a word is recognized: equal texts come from equal
// words.
var examples = [...]resp.Args{
	{Key: 100_003, Value: []byte("v100019"), Int: 100_043, User: 100_049, Seq: 100_057},
	{Key: 200_003, Value: []byte("v200009"), Int: 200_017, User: 200_023, Seq: 200_029},
}

func (c *commands) FindKeys(find func(words []string) ([]string, bool, error)) error {
	for op := range c.words {
		keys, known, err := c.findKey(op, &examples[0], find)
		if err == nil && known && !inOneSlot(keys) { // by chance, or always
			keys, known, err = c.findKey(op, &examples[1], find)
		}
		switch {
		case err != nil:
			return err
		case known && !inOneSlot(keys):
			return &CrossSlot{Operation: c.Operations()[op].Name, Keys: keys}
		}
	}
	return nil
}

// findKey routes a command by the first of its keys, and returns those of an example.
func (c *commands) findKey(
	op int, a *resp.Args, find func(words []string) ([]string, bool, error),
) (keys []string, known bool, err error) {
	texts := textsOf(c.words[op], a)
	keys, known, err = find(texts)
	if err == nil && known {
		c.keys[op] = keyIn(c.words[op], texts, keys)
	}
	return keys, known, err
}

func textsOf(words []*word, a *resp.Args) []string {
	texts := make([]string, len(words))
	for i, w := range words {
		_, text := w.append(nil, a)
		texts[i] = string(text)
	}
	return texts
}

// keyIn returns the word that is the first of the keys; nil if there is none.
func keyIn(words []*word, texts, keys []string) *word {
	if len(keys) == 0 {
		return nil
	}
	at := slices.Index(texts[1:], keys[0])
	if at < 0 {
		return nil
	}
	return words[1+at]
}

func inOneSlot(keys []string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool {
		return topology.SlotOf([]byte(key)) != topology.SlotOf([]byte(keys[0]))
	})
}
