package process

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
)

// clientKill closes the connections of one type of clients, once. There is nothing to revert:
// clients reconnect.
type clientKill struct {
	contract.Deps
	contract.Instant
	clients v1alpha1.ClientType
}

func newClientKill(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	given := ptr.Deref(spec.Action.ClientKill, v1alpha1.ClientKill{})
	return clientKill{Deps: deps, clients: cmp.Or(given.Type, v1alpha1.ClientNormal)}
}

// killRecord is the record of a client kill. A connection's id is higher than that of every
// connection before it.
type killRecord struct {
	LastClient int64 `json:"lastClient"` // the highest ID of the connections that were open
	Kills      int64 `json:"kills"`      // how many CLIENT KILLs the server had executed
	// how many connections it had ever taken: total_connections_received
	Connections int64 `json:"connections"`
	// the server's reply: how many it closed; absent until then
	Killed *string `json:"killed,omitempty"`
}

func (clientKill) Traits() contract.Traits {
	return contract.Traits{Together: true}
}

func (k clientKill) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	for _, command := range [][]string{
		{"CLIENT", "KILL", "TYPE", string(k.clients)},
		{"CLIENT", "LIST"},
	} {
		err := k.MayRun(ctx, target.Address, command...)
		if err != nil {
			return err
		}
	}
	there, err := k.list(ctx, target.Address)
	if err != nil {
		return err
	}
	if len(there) == 0 && !k.DryRun {
		return problem.NoTarget(
			"spec.action.clientKill.type: the server at %s has no connection of type %s but the operator's",
			target.Address, k.clients)
	}
	counted, err := k.count(ctx, target.Address)
	if err != nil {
		return err
	}
	last := int64(0)
	for _, id := range there {
		last = max(last, id)
	}
	return contract.Save(target, killRecord{
		LastClient:  last,
		Kills:       counted.kills,
		Connections: counted.connections,
	})
}

func (k clientKill) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	return contract.Progress{}, k.kill(ctx, target)
}

func (k clientKill) kill(ctx context.Context, target *v1alpha1.FaultTarget) error {
	record, recorded, err := contract.Load[killRecord](target)
	if err != nil {
		return err
	}
	if begun, err := k.Begun(ctx, target); begun || err != nil {
		return err
	}
	runs, err := k.ProcessRuns(ctx, target)
	if !runs || err != nil {
		return err
	}
	reply, err := k.Servers.Do(ctx, target.Address, k.Login, "CLIENT", "KILL", "TYPE",
		string(k.clients), "SKIPME", "yes")
	if err != nil {
		return k.Refusal(err, target.Address, "CLIENT", "KILL")
	}
	if !recorded {
		return nil
	}
	record.Killed = new(fmt.Sprint(reply))
	return contract.Save(target, record)
}

// Begun is true once the server has executed a kill and none of the recorded connections is left.
// Connections that were opened later are not to be closed.
func (k clientKill) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	record, _, err := contract.Load[killRecord](target)
	if err != nil {
		return false, err
	}
	if record.Killed != nil {
		return true, ctx.Err()
	}
	runs, err := k.ProcessRuns(ctx, target)
	if !runs || err != nil {
		return false, err
	}
	counted, err := k.count(ctx, target.Address)
	if err != nil || counted.kills <= record.Kills {
		return false, err
	}
	left, err := k.survivors(ctx, target, record)
	return err == nil && left == 0, err
}

func (k clientKill) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	record, _, err := contract.Load[killRecord](target)
	if err != nil {
		return contract.Unseen(err)
	}
	if runs, err := k.ProcessRuns(ctx, target); err != nil {
		return contract.Unseen(err)
	} else if !runs {
		return contract.Inconclusive("the server at %s is another process than before",
			target.Address)
	}
	left, err := k.survivors(ctx, target, record)
	if err != nil {
		return contract.Unseen(err)
	}
	counted, err := k.count(ctx, target.Address)
	if err != nil {
		return contract.Unseen(err)
	}
	killed := "an unknown number of"
	if record.Killed != nil {
		killed = *record.Killed
	}
	switch {
	case counted.kills <= record.Kills:
		return contract.NotObserved(
			"the server at %s still counts no further CLIENT KILL", target.Address)
	case left > 0:
		return contract.NotObserved(
			"%d connections of type %s from before the fault are still open at %s", left, k.clients,
			target.Address)
	case killed == "0":
		return contract.NotObserved("the server at %s closed no connection of type %s",
			target.Address, k.clients)
	}
	return contract.Confirmed(
		"the server at %s closed %s connections of type %s, none from before is left, and it has taken %d new ones",
		target.Address, killed, k.clients, counted.connections-record.Connections)
}

// survivors counts the connections of the type that were open when the record was made and still
// are.
func (k clientKill) survivors(
	ctx context.Context, target *v1alpha1.FaultTarget, record killRecord,
) (int, error) {
	there, err := k.list(ctx, target.Address)
	n := 0
	for _, id := range there {
		if id <= record.LastClient {
			n++
		}
	}
	if n > 0 && k.clients == v1alpha1.ClientNormal {
		n-- // the connection that sent the kill is kept (SKIPME)
	}
	return n, err
}

// list returns the IDs of the connections of the fault's type, except those whose last command was
// CLIENT LIST, as is the operator's.
func (k clientKill) list(ctx context.Context, address string) ([]int64, error) {
	reply, err := k.Servers.Do(ctx, address, k.Login, "CLIENT", "LIST", "TYPE", string(k.clients))
	if err != nil {
		return nil, err
	}
	text, _ := reply.(string)
	var ids []int64
	for line := range strings.Lines(text) {
		id, asks := int64(0), false
		for field := range strings.FieldsSeq(line) {
			name, value, _ := strings.Cut(field, "=")
			switch name {
			case "id":
				id, _ = strconv.ParseInt(value, 10, 64)
			case "cmd":
				asks = value == "client|list" || value == "client"
			}
		}
		if id > 0 && !asks {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// connectionCounts are counters since the start of the server.
type connectionCounts struct{ kills, connections int64 }

func (k clientKill) count(ctx context.Context, address string) (connectionCounts, error) {
	info, err := k.Info(ctx, address, "everything")
	if err != nil {
		return connectionCounts{}, err
	}
	kills, counted := info.Command("client|kill")
	if !counted { // before Redis 7 all of CLIENT is counted together
		kills, _ = info.Command("client")
	}
	return connectionCounts{
		kills:       kills.Calls,
		connections: info.Int("total_connections_received"),
	}, nil
}
