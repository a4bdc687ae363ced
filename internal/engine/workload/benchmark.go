package workload

import (
	"context"
	"fmt"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/redis/topology"
)

// benchmark is redis-benchmark's tests: encoded commands, each with its own key prefix below the
// keyspace's.
type benchmark struct {
	commands
	tests  []string
	single []bool
}

func newBenchmark(s *plan.Workload) (*benchmark, error) {
	b := &benchmark{tests: s.Benchmark.Tests, commands: commands{
		mix:      mixOf(s),
		keyspace: s.Keyspace,
		values:   newValuePool(s.Values),
	}}
	for i, name := range b.tests {
		test := plan.BenchmarkTestNamed(name)
		err := b.compile(withTTL(test.Words, s.Keyspace.TTL), s.Keyspace.Prefix+test.Place)
		if err != nil {
			return nil, fmt.Errorf("benchmark.tests[%d]: %w", i, err)
		}
		b.single = append(b.single, test.Single)
	}
	return b, nil
}

// Fill sets the keyspace's keys if Prefill is set, and fills the structures from which the tests
// remove elements.
func (b *benchmark) Fill(ctx context.Context, f *Filler) error {
	if err := b.commands.Fill(ctx, f); err != nil {
		return err
	}
	filled := map[string]bool{}
	for _, name := range b.tests {
		test := plan.BenchmarkTestNamed(name)
		if test.Fills == nil || filled[test.Place] {
			continue
		}
		filled[test.Place] = true
		items := b.keyspace.Keys
		if test.Place == "lrange:" {
			items = plan.RangeElements
		}
		if err := b.fillElements(ctx, f, test, items); err != nil {
			return err
		}
	}
	return nil
}

func (b *benchmark) fillElements(
	ctx context.Context, f *Filler, test plan.BenchmarkTest, items int64,
) error {
	words := test.Fills
	t, err := resp.Compile(words, b.keyspace.Prefix+test.Place)
	if err != nil {
		return fmt.Errorf("compile the command %q that fills %s: %w", words, test.Place, err)
	}
	slot := topology.SlotOf([]byte(b.keyspace.Prefix + test.Place + "0"))
	what := "elements of " + b.keyspace.Prefix + test.Place + "0"
	return f.Write(ctx, Data{
		What:    what,
		Items:   items,
		Command: words[0],
		Encoder: func(from int64) func([]byte, int64, int64) ([]byte, int64, uint16) {
			chance := newChance(nil, from)
			var args resp.Args
			return func(dst []byte, item, _ int64) ([]byte, int64, uint16) {
				args.Seq, args.Value = uint64(item), b.values.draw(&chance)
				return t.Append(dst, &args), 1, slot
			}
		},
	})
}

// Source returns the source of one event loop's requests.
func (b *benchmark) Source(number, of int64, slots bool) Source {
	return &benchmarkSource{commandSource: *b.commands.source(number, of, slots), single: b.single}
}

type benchmarkSource struct {
	commandSource
	single []bool
}

// Draw sets the key to 0 for tests that use a single structure.
func (s *benchmarkSource) Draw(op int, r *Request) {
	if s.single[op] {
		r.Key = 0
		s.drawRest(op, r)
		return
	}
	s.commandSource.Draw(op, r)
}
