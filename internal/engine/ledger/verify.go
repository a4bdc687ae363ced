package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
)

// Verify reads the ledgers back. The load must have stopped, and the books must not be in use. It
// waits up to ResyncLimit until the replicas are in sync, reads every key from its primary and each
// replica, and deletes the keys. Unread and Notes of the result list what could not be read; the
// error is ctx's cause, or that the deployment cannot be read at all. progress is called with
// human-readable messages; it may be nil.
func (a *Audit) Verify(
	ctx context.Context, books []*Book, progress func(string),
) (*record.Ledger, error) {
	if progress == nil {
		progress = func(string) {}
	}
	r := &record.Ledger{}
	layout, late, err := a.awaitStep(ctx, progress)
	if err != nil {
		return nil, err
	}
	for _, why := range late {
		r.AddNote(why)
	}
	if missing := a.before - len(layout.Nodes); missing > 0 {
		r.AddNote(
			fmt.Sprintf(
				"%d of the %d nodes of the deployment before the load have left it and were not read.", missing,
				a.before))
	}
	nodes := a.connections()
	defer nodes.close()
	total := 0
	for _, b := range books {
		total += len(b.pages)
		r.Unique = r.Unique || b.unique
		if b.counted {
			r.CountExecuted(0)
		}
	}
	reader := reading{
		audit:          a,
		nodes:          nodes,
		layout:         layout,
		late:           late,
		result:         r,
		replicaMissing: map[string]uint64{},
	}
	done := 0
	for _, b := range books {
		for shard := range b.pages {
			progress(fmt.Sprintf("reading the ledger: %d of %d keys", done, total))
			reader.page(ctx, b, shard)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			done++
		}
	}
	reader.conclude(ctx, books)
	return r, nil
}

// awaitStep waits until every replica is in sync with its primary. late lists those that are not,
// by address, with the reason.
func (a *Audit) awaitStep(
	ctx context.Context, progress func(string),
) (layout Layout, late map[string]string, err error) {
	limit := a.ResyncLimit
	if limit == 0 {
		limit = DefaultResyncLimit
	}
	for waited := time.Duration(0); ; waited += pollEvery {
		if layout, err = a.Discover(ctx); err == nil {
			all := len(layout.Nodes) >= a.before || waited >= goneLimit
			if late, err = a.outOfStep(ctx, &layout); err == nil && len(late) == 0 && all {
				return layout, nil, nil
			}
		}
		if ctx.Err() != nil {
			return layout, nil, context.Cause(ctx)
		}
		if waited >= limit {
			break
		}
		if waited%sayEvery == 0 {
			progress(waitingFor(late, a.before-len(layout.Nodes), err))
		}
		if !a.Wait(ctx, pollEvery) {
			return layout, nil, context.Cause(ctx)
		}
	}
	if err != nil {
		return layout, nil, fmt.Errorf("ledger: read it back within %v: %w", limit, err)
	}
	return layout, late, nil
}

// waitingFor is a progress message about what delays reading the ledger.
func waitingFor(late map[string]string, missing int, err error) string {
	switch {
	case err != nil:
		return fmt.Sprintf("waiting for Redis before the ledger is read: %v", err)
	case len(late) == 0:
		return fmt.Sprintf("waiting for %d nodes to rejoin the deployment before the ledger is read",
			missing)
	}
	return fmt.Sprintf("waiting for %d replicas to be in sync before the ledger is read, such as %s",
		len(late), slices.Min(slices.Collect(maps.Keys(late))))
}

// outOfStep returns the replicas that lack data which their primary had when it was queried, by
// address with the reason. The error means that a primary cannot be queried.
func (a *Audit) outOfStep(ctx context.Context, layout *Layout) (map[string]string, error) {
	late := map[string]string{}
	for _, primary := range layout.Nodes {
		if !primary.Primary {
			continue
		}
		if _, err := layout.primary(primary.Shard); err != nil {
			return nil, err
		}
		at, err := a.infoOf(ctx, primary.Address)
		if err != nil {
			return nil, err
		}
		if at["role"] != "master" {
			return nil, fmt.Errorf("%s should be the primary but has role %s", primary.Address, at["role"])
		}
		if at.On("loading") {
			return nil, fmt.Errorf("%s is loading its data set", primary.Address)
		}
		for _, n := range layout.Nodes {
			if n.Shard != primary.Shard || n.Primary {
				continue
			}
			if why := a.behind(ctx, n, at); why != "" {
				late[n.Address] = fmt.Sprintf("Replica %s was not in sync after the load and was not read: %s.",
					n.Address, why)
			}
		}
	}
	return late, nil
}

// behind returns why a replica is not in sync with the INFO of its primary; "" if it is.
func (a *Audit) behind(ctx context.Context, n Node, primary redis.Info) string {
	at, err := a.infoOf(ctx, n.Address)
	switch {
	case err != nil:
		return err.Error()
	case at["role"] != "slave":
		return "it has role " + at["role"]
	case at["master_link_status"] != "up":
		return "its link to the primary is " + at["master_link_status"]
	case at["master_sync_in_progress"] != "0" || at.On("loading"):
		return "it is still synchronizing with the primary"
	case at["master_replid"] != primary["master_replid"]:
		return "it follows another primary"
	case at.Int("slave_repl_offset") < primary.Int("master_repl_offset"):
		return fmt.Sprintf("it is %d bytes behind",
			primary.Int("master_repl_offset")-at.Int("slave_repl_offset"))
	}
	return ""
}
