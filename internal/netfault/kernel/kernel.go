//go:build linux

// Package kernel drops or delays packets of a network namespace. What it sets by nftables has a
// timeout: the kernel lifts it by itself, whatever has become of the process.
//
// A fault has a table of its own, with a chain for each direction and three sets. gate holds the
// transport protocols whose packets are dropped; its elements have the timeout, so that a gate
// without elements is open. peers4 and peers6 hold addresses. ICMPv6 is never dropped: it finds the
// neighbors.
//
// To delay packets, the rules do not drop them, but set their priority to a class of a queueing
// discipline, htb, in which netem holds them. All others pass it unchanged, and so do these once the
// gate is open.
package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/redquake/redquake/internal/netfault"
)

// prefix of the names of tables; the rest is the fault's ID.
const prefix = "redquake-"

// beforeAll is a priority before connection tracking: what is dropped leaves no trace there.
var beforeAll = nftables.ChainPriorityRef(-300)

// protocols are those whose packets are dropped.
var protocols = []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMP, unix.IPPROTO_SCTP}

// tables of a namespace, over one connection to the kernel.
type tables struct{ conn *nftables.Conn }

// Hold drops packets by a rule from now on for its time; where there are rules of the fault already,
// as Renew. Whoever asks after the release, such as a call that was held up on its way, sets nothing.
// Where all peers but some are cut off, the gateways are spared as well: the kubelet would restart a
// container that its probes do not reach.
func Hold(r *netfault.Rule) (netfault.State, error) {
	return in(func(t tables) (netfault.State, error) {
		state, err := t.state(r.ID)
		if err != nil || state.Released || state.Exists && state.Left == 0 {
			return state, err
		}
		if r.Delay.Latency > 0 {
			if err := delayLine(r); err != nil {
				return unsupported(state, err)
			}
		}
		return t.set(r, state.Exists)
	})
}

// Try returns in State.Unsupported why the kernel cannot do what a rule says. It leaves nothing.
func Try(r *netfault.Rule) (netfault.State, error) {
	if err := r.Check(); err != nil || r.Delay.Latency == 0 {
		return netfault.State{}, err
	}
	err := delayLine(r)
	state, err := unsupported(netfault.State{}, err)
	return state, errors.Join(err, removeDelayLine(r.ID))
}

// Renew goes on with what Hold has begun, with the peers of this rule: nothing passes in between.
// Directions and share of a fault do not change. What was released, or lifted by the kernel, has
// ended: whoever asks too late, and does not know that, sets nothing.
func Renew(r *netfault.Rule) (netfault.State, error) {
	return in(func(t tables) (netfault.State, error) {
		state, err := t.state(r.ID)
		if err != nil || state.Left == 0 {
			return state, err
		}
		return t.set(r, true)
	})
}

// Release drops nothing more for a fault. Its table stays, without rules: Hold sees that it is over.
func Release(id string) (netfault.State, error) {
	return in(func(t tables) (netfault.State, error) {
		table := t.conn.AddTable(tableOf(id)) // so that its removal cannot fail
		t.conn.DelTable(table)
		t.conn.AddTable(table)
		if err := t.conn.Flush(); err != nil {
			return netfault.State{}, fmt.Errorf("remove the rules of fault %s: %w", id, err)
		}
		if err := removeDelayLine(id); err != nil {
			return netfault.State{}, err
		}
		return t.state(id)
	})
}

// Show returns what the kernel does for a fault.
func Show(id string) (netfault.State, error) {
	return in(func(t tables) (netfault.State, error) { return t.state(id) })
}

func in(do func(tables) (netfault.State, error)) (netfault.State, error) {
	conn, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return netfault.State{}, fmt.Errorf("connect to nftables: %w", err)
	}
	defer func() { _ = conn.CloseLasting() }()
	return do(tables{conn})
}

func tableOf(id string) *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyINet, Name: prefix + id}
}

func (t tables) exists(id string) (bool, error) {
	all, err := t.conn.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		return false, fmt.Errorf("list the tables of nftables: %w", err)
	}
	return slices.ContainsFunc(all, func(other *nftables.Table) bool {
		return other.Name == prefix+id
	}), nil
}

// set sets the rules of a fault, which exist or not, and returns what they do.
func (t tables) set(r *netfault.Rule, exists bool) (netfault.State, error) {
	if err := r.Check(); err != nil {
		return netfault.State{}, err
	}
	if r.Except {
		spared, err := gateways()
		if err != nil {
			return netfault.State{}, err
		}
		with := *r
		with.Peers = slices.Concat(r.Peers, spared)
		r = &with
	}
	change := t.create
	if exists {
		change = t.renew
	}
	if err := change(r); err != nil {
		return netfault.State{}, fmt.Errorf("set the rules of fault %s: %w", r.ID, err)
	}
	return t.state(r.ID)
}

// sets are those of a table.
type sets struct{ gate, peers4, peers6 *nftables.Set }

func setsOf(table *nftables.Table) sets {
	return sets{
		gate: &nftables.Set{
			Table:      table,
			Name:       "gate",
			KeyType:    nftables.TypeInetProto,
			HasTimeout: true,
			Timeout:    netfault.Longest, // of an element that has none
		},
		peers4: &nftables.Set{Table: table, Name: "peers4", KeyType: nftables.TypeIPAddr},
		peers6: &nftables.Set{Table: table, Name: "peers6", KeyType: nftables.TypeIP6Addr},
	}
}

// create makes the table of a rule, in one transaction. It replaces one that another process has made
// just then: rules that are there twice would drop a share twice.
func (t tables) create(r *netfault.Rule) error {
	table := t.conn.AddTable(tableOf(r.ID)) // so that its removal cannot fail
	t.conn.DelTable(table)
	t.conn.AddTable(table)
	of := setsOf(table)
	for _, set := range []*nftables.Set{of.gate, of.peers4, of.peers6} {
		if err := t.conn.AddSet(set, nil); err != nil {
			return err
		}
	}
	for _, d := range directionsOf(r) {
		chain := t.conn.AddChain(&nftables.Chain{
			Name:     d.name,
			Table:    table,
			Type:     nftables.ChainTypeFilter,
			Hooknum:  d.hook,
			Priority: beforeAll,
		})
		t.conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: d.acceptLoopback()})
		for _, f := range []family{ipv4, ipv6} {
			t.conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: d.drop(f, of, r)})
		}
	}
	if err := t.fill(of, r); err != nil {
		return err
	}
	return t.conn.Flush()
}

// renew replaces peers and timeouts, in one transaction: an element that is added again keeps its
// timeout.
func (t tables) renew(r *netfault.Rule) error {
	of := setsOf(tableOf(r.ID))
	for _, set := range []*nftables.Set{of.gate, of.peers4, of.peers6} {
		t.conn.FlushSet(set)
	}
	if err := t.fill(of, r); err != nil {
		return err
	}
	return t.conn.Flush()
}

// fill adds the elements of a rule to sets without any.
func (t tables) fill(of sets, r *netfault.Rule) error {
	closed := make([]nftables.SetElement, len(protocols))
	for i, protocol := range protocols {
		closed[i] = nftables.SetElement{Key: []byte{protocol}, Timeout: r.For}
	}
	four, six := elements(r.Peers)
	return errors.Join(t.add(of.gate, closed), t.add(of.peers4, four), t.add(of.peers6, six))
}

func (t tables) add(set *nftables.Set, all []nftables.SetElement) error {
	for some := range slices.Chunk(all, 256) { // a message of netlink has at most 64 KiB
		if err := t.conn.SetAddElements(set, some); err != nil {
			return err
		}
	}
	return nil
}

func elements(peers []netip.Addr) (four, six []nftables.SetElement) {
	seen := map[netip.Addr]bool{}
	for _, peer := range peers {
		peer = peer.Unmap().WithZone("")
		if seen[peer] {
			continue
		}
		seen[peer] = true
		element := nftables.SetElement{Key: peer.AsSlice()}
		if peer.Is4() {
			four = append(four, element)
		} else {
			six = append(six, element)
		}
	}
	return four, six
}

// state reads what the table of a fault does.
func (t tables) state(id string) (netfault.State, error) {
	exists, err := t.exists(id)
	if err != nil || !exists {
		return netfault.State{}, err
	}
	table, state := tableOf(id), netfault.State{Exists: true}
	chains, err := t.conn.ListChainsOfTableFamily(table.Family)
	if err != nil {
		return netfault.State{}, fmt.Errorf("list the chains of nftables: %w", err)
	}
	if !slices.ContainsFunc(chains, func(c *nftables.Chain) bool { return c.Table.Name == table.Name }) {
		return netfault.State{Released: true}, nil
	}
	gate, err := t.conn.GetSetElements(setsOf(table).gate)
	if err != nil {
		return netfault.State{}, fmt.Errorf("read the gate of fault %s: %w", id, err)
	}
	for _, element := range gate {
		state.Left = max(state.Left, element.Expires)
	}
	for name, counts := range map[string][2]*uint64{
		chainIn:  {&state.SeenIn, &state.DroppedIn},
		chainOut: {&state.SeenOut, &state.DroppedOut},
	} {
		rules, err := t.conn.GetRules(table, &nftables.Chain{Name: name, Table: table})
		if errors.Is(err, os.ErrNotExist) { // not a direction of this fault
			continue
		} else if err != nil {
			return netfault.State{}, fmt.Errorf("read the rules of fault %s: %w", id, err)
		}
		for _, rule := range rules {
			seen, dropped := counted(rule)
			*counts[0] += seen
			*counts[1] += dropped
		}
	}
	return state, nil
}

// counted are the packets at the first counter of a rule, and at the last one.
func counted(rule *nftables.Rule) (first, last uint64) {
	any := false
	for _, e := range rule.Exprs {
		counter, ok := e.(*expr.Counter)
		if !ok {
			continue
		}
		if !any {
			first, any = counter.Packets, true
		}
		last = counter.Packets
	}
	return first, last
}

const (
	chainIn  = "in"
	chainOut = "out"
)

// direction is a chain, and where a packet in it has the name of the interface and the address of
// the peer.
type direction struct {
	name      string
	hook      *nftables.ChainHook
	device    expr.MetaKey
	addressAt func(family) uint32
}

func directionsOf(r *netfault.Rule) []direction {
	var all []direction
	if r.In {
		all = append(all, direction{
			chainIn, nftables.ChainHookInput, expr.MetaKeyIIFNAME,
			func(f family) uint32 { return f.source },
		})
	}
	if r.Out {
		all = append(all, direction{
			chainOut, nftables.ChainHookOutput, expr.MetaKeyOIFNAME,
			func(f family) uint32 { return f.source + f.length },
		})
	}
	return all
}

// family is a version of IP, and where a packet of it has its addresses.
type family struct {
	protocol       byte
	source, length uint32
	peers          func(sets) *nftables.Set
}

// The addresses of a header: RFC 791, 3.1 and RFC 8200, 3.
var (
	ipv4 = family{unix.NFPROTO_IPV4, 12, 4, func(of sets) *nftables.Set { return of.peers4 }}
	ipv6 = family{unix.NFPROTO_IPV6, 8, 16, func(of sets) *nftables.Set { return of.peers6 }}
)

// acceptLoopback accepts what the pod sends to itself: probes by exec, and what the pod's containers
// tell one another.
func (d direction) acceptLoopback() []expr.Any {
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, "lo")
	return []expr.Any{
		&expr.Meta{Key: d.device, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: name},
		&expr.Verdict{Kind: expr.VerdictAccept},
	}
}

// drop drops the packets of a version of IP.
func (d direction) drop(f family, of sets, r *netfault.Rule) []expr.Any {
	peers := f.peers(of)
	all := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{f.protocol}},
		&expr.Payload{
			DestRegister: 1,
			Base:         expr.PayloadBaseNetworkHeader,
			Offset:       d.addressAt(f),
			Len:          f.length,
		},
		&expr.Lookup{SourceRegister: 1, SetName: peers.Name, SetID: peers.ID, Invert: r.Except},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Lookup{SourceRegister: 1, SetName: of.gate.Name, SetID: of.gate.ID},
	}
	if r.Share < netfault.Whole {
		all = append(all, &expr.Counter{})
		all = append(all, atRandom(r.Share)...)
	}
	all = append(all, &expr.Counter{})
	if r.Delay.Latency > 0 {
		return append(all, into(r.ID)...)
	}
	return append(all, &expr.Verdict{Kind: expr.VerdictDrop})
}

// atRandom passes a share of the packets to the expressions after it. The number is drawn in the
// byte order of the host, and compared byte by byte.
func atRandom(share int) []expr.Any {
	return []expr.Any{
		&expr.Numgen{Register: 1, Type: unix.NFT_NG_RANDOM, Modulus: netfault.Whole},
		&expr.Byteorder{
			SourceRegister: 1,
			DestRegister:   1,
			Op:             expr.ByteorderHton,
			Len:            4,
			Size:           4,
		},
		&expr.Cmp{
			Op:       expr.CmpOpLt,
			Register: 1,
			Data:     binary.BigEndian.AppendUint32(nil, uint32(share)),
		},
	}
}
