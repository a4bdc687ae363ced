package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// tests are all that is to be run.
type tests struct {
	options
	packages []testPackage
	journal  *journal
	began    time.Time
	mutex    sync.Mutex // of the journal, of files of failures, and of what is printed
}

var errInterrupted = errors.New("interrupted; the same command goes on where this one stopped")

// rounds runs what is missing, beside one load after the other, until the limit.
func (t *tests) rounds(ctx context.Context) error {
	for _, l := range t.loads {
		for number := 1; number <= l.runs; number++ {
			missing := t.missing(l, number)
			if len(missing) == 0 {
				continue
			}
			if t.limit > 0 && time.Since(t.began) >= t.limit {
				return nil
			}
			if err := t.round(ctx, l, number, missing); err != nil {
				return err
			}
			if err := writeRows(t.folder+".json", summarize(t.journal.entries)); err != nil {
				return err
			}
		}
	}
	return nil
}

// missing are the packages that have run fewer than number times.
func (t *tests) missing(l load, number int) (list []testPackage) {
	for _, p := range t.packages {
		if t.journal.runs(p, l) < number {
			list = append(list, p)
		}
	}
	return list
}

// round runs packages once. The API server starts before the load, and ends after it: neither is
// under test.
func (t *tests) round(ctx context.Context, l load, number int, packages []testPackage) (err error) {
	began := time.Now()
	fmt.Printf("\nround %d of %d beside %v: %d packages (%v so far)\n", number, l.runs, l,
		len(packages), began.Sub(t.began).Round(time.Second))
	var together, alone []testPackage
	for _, p := range packages {
		if p.alone {
			alone = append(alone, p)
		} else {
			together = append(together, p)
		}
	}
	kubeconfig, end, err := t.controlPlane(len(together) > 0)
	if err != nil {
		return interruptedOr(ctx, err)
	}
	defer func() { err = errors.Join(err, end()) }()
	stop, err := l.start()
	if err != nil {
		return err
	}
	defer stop()
	one := turn{load: l, number: number, kubeconfig: kubeconfig}
	if err := t.runAll(ctx, together, one, t.parallel); err != nil {
		return interruptedOr(ctx, err)
	}
	return interruptedOr(ctx, t.runAll(ctx, alone, one, 1))
}

func interruptedOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

// turn is what the runs of a round have in common.
type turn struct {
	load       load
	number     int
	kubeconfig string
}

// runAll runs packages in the order in which they are listed, some at a time. The first error that
// is none of a test ends it.
func (t *tests) runAll(ctx context.Context, packages []testPackage, one turn, atATime int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan testPackage)
	var workers sync.WaitGroup
	for range min(atATime, len(packages)) {
		workers.Go(func() {
			for p := range next {
				if ctx.Err() == nil {
					if err := t.runOnce(ctx, p, one); err != nil {
						cancel(err)
					}
				}
			}
		})
	}
	for _, p := range packages {
		next <- p
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// printRest says what is left to do.
func (t *tests) printRest(w io.Writer) {
	left := 0
	for _, l := range t.loads {
		for _, p := range t.packages {
			left += max(0, l.runs-t.journal.runs(p, l))
		}
	}
	if left > 0 {
		fmt.Fprintf(w,
			"stress: stopped at the limit of %v; %d runs of packages are left, which the same command does\n",
			t.limit, left)
	}
}
