package workload

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis/resp"
)

// commands are the workload's commands, encoded.
type commands struct {
	mix
	keyspace  plan.Keyspace
	templates []*resp.Template
	words     [][]*word // of each
	keys      []*word   // the routing key of each; nil = it has none
	values    *valuePool
}

func newCommands(s *plan.Workload) (*commands, error) {
	c := &commands{
		mix:      mixOf(s),
		keyspace: s.Keyspace,
		values:   newValuePool(s.Values),
	}
	for i, command := range s.Commands {
		err := c.compile(withTTL(command.Words, s.Keyspace.TTL), s.Keyspace.Prefix)
		if err != nil {
			return nil, fmt.Errorf("commands[%d].words: %w", i, err)
		}
	}
	return c, nil
}

// compile adds an operation's command.
func (c *commands) compile(words []string, prefix string) error {
	t, err := resp.Compile(words, prefix)
	if err != nil {
		return err
	}
	all, err := compileWords(words, prefix)
	if err != nil {
		return err
	}
	c.templates = append(c.templates, t)
	c.words = append(c.words, all)
	c.keys = append(c.keys, guessKey(words, all))
	return nil
}

// Fill sets this pod's part of the keys if Prefill is set.
func (c *commands) Fill(ctx context.Context, f *Filler) error {
	if !c.keyspace.Prefill {
		return nil
	}
	return fillKeys(ctx, f, c.keyspace, c.values)
}

// fillKeys sets the keys of a keyspace.
func fillKeys(ctx context.Context, f *Filler, k plan.Keyspace, values *valuePool) error {
	words := withTTL([]string{"SET", "{key}", "{value}"}, k.TTL)
	t, err := resp.Compile(words, k.Prefix)
	if err != nil {
		return fmt.Errorf("compile the command %q of the prefill: %w", words, err)
	}
	key, err := compileWord(words[1], k.Prefix)
	if err != nil {
		return fmt.Errorf("compile the key %q of the prefill: %w", words[1], err)
	}
	return f.Write(ctx, Data{
		What:    "keys",
		Items:   k.Keys,
		Command: "SET",
		Encoder: func(from int64) func([]byte, int64, int64) ([]byte, int64, uint16) {
			chance := newChance(nil, from)
			var args resp.Args
			var scratch []byte
			return func(dst []byte, item, _ int64) ([]byte, int64, uint16) {
				args.Key, args.Value = item, values.draw(&chance)
				var slot uint16 = NoSlot
				if f.NodeOf != nil {
					slot, scratch = key.slot(scratch, &args)
				}
				return t.Append(dst, &args), 1, slot
			}
		},
	})
}

// withTTL appends PX to a plain SET of {key}, which has only a key and a value.
func withTTL(words []string, ttl time.Duration) []string {
	if ttl == 0 || len(words) != 3 || !strings.EqualFold(words[0], "SET") ||
		!strings.Contains(words[1], "{key}") {
		return words
	}
	return append(words[:3:3], "PX", strconv.FormatInt(ttl.Milliseconds(), 10))
}

// Source returns the source of one event loop's requests.
func (c *commands) Source(number, of int64, slots bool) Source {
	return c.source(number, of, slots)
}

func (c *commands) source(number, of int64, slots bool) *commandSource {
	chance := newChance(&c.mix, number)
	return &commandSource{
		chance:   chance,
		commands: c,
		slots:    slots,
		seq:      firstSeq(number, of, len(c.templates)),
		step:     of,
		draws:    newKeyDraw(c.keyspace, number, of, chance),
	}
}

type commandSource struct {
	chance
	commands *commands
	draws    *keyDraw
	slots    bool
	seq      int64 // the next {seq}, and by how much it grows
	step     int64
	args     resp.Args
	scratch  []byte // the key of the last slot
}

// Draw starts a request.
func (s *commandSource) Draw(op int, r *Request) {
	r.Key = 0
	if s.commands.templates[op].UsesKey() {
		r.Key = s.draws.draw()
	}
	s.drawRest(op, r)
}

// drawRest draws everything except the key. {int} is kept in state[0] and {seq} in state[1]: they
// may be part of the key.
func (s *commandSource) drawRest(op int, r *Request) {
	r.Op, r.Slot = op, NoSlot
	if s.commands.templates[op].UsesInt() {
		r.state[0] = s.below(s.commands.keyspace.Keys)
	}
	r.state[1] = s.seq
	s.seq += s.step
	if key := s.commands.keys[op]; s.slots && key != nil {
		s.take(r)
		r.Slot, s.scratch = key.slot(s.scratch, &s.args)
	}
}

func (s *commandSource) Append(dst []byte, r *Request) ([]byte, int) {
	t := s.commands.templates[r.Op]
	s.take(r)
	if t.UsesValue() {
		s.args.Value = s.commands.values.draw(&s.chance)
	}
	return t.Append(dst, &s.args), 1
}

func (s *commandSource) take(r *Request) {
	s.args.Key, s.args.Int, s.args.User, s.args.Seq = r.Key, r.state[0], r.User, uint64(r.state[1])
}

// head returns the beginning of an encoded command with the given number of words and first words.
func head(words int, first ...string) []byte {
	encoded := resp.AppendCommand(nil, first...)
	_, rest, _ := cutLine(encoded)
	return append([]byte("*"+strconv.Itoa(words)+"\r\n"), rest...)
}

func cutLine(b []byte) (line, rest []byte, found bool) {
	for i, c := range b {
		if c == '\n' {
			return b[:i], b[i+1:], true
		}
	}
	return b, nil, false
}

// appendNumber appends a word that consists of a text and a non-negative number.
func appendNumber(dst []byte, text string, n int64) []byte {
	digits := 1
	for rest := n; rest >= 10; rest /= 10 {
		digits++
	}
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(len(text)+digits), 10)
	dst = append(dst, '\r', '\n')
	dst = append(dst, text...)
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, '\r', '\n')
}

// appendText appends a word that consists of two texts.
func appendText(dst []byte, a, b string) []byte {
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(len(a)+len(b)), 10)
	dst = append(dst, '\r', '\n')
	dst = append(dst, a...)
	dst = append(dst, b...)
	return append(dst, '\r', '\n')
}
