//go:build linux

package kernel

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/redquake/redquake/internal/netfault"
)

const (
	// delayedClass is the class of the packets that are delayed.
	delayedClass = 1
	// fastest is the rate of that class, in bits per second: packets are to wait for netem alone.
	fastest = 30e9
	// mostDelayed is how many packets wait at most; others are dropped.
	mostDelayed = 100_000
)

// errUnsupported is what this kernel, or this pod, cannot do.
type errUnsupported struct{ error }

// unsupported puts why a rule cannot be held into a state.
func unsupported(state netfault.State, err error) (netfault.State, error) {
	if why, is := errors.AsType[errUnsupported](err); is {
		state.Unsupported = why.Error()
		return state, nil
	}
	return state, err
}

// majorOf is the handle of the queueing discipline of a fault, by which another one knows that it is
// not its own.
func majorOf(id string) uint16 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id))
	return uint16(0x1000 + hash.Sum32()%0xe000)
}

// into has the packets before it wait in the class of a fault: skb->priority names it, in the byte
// order of the host (net/sched/sch_htb.c, htb_classify).
func into(id string) []expr.Any {
	return []expr.Any{
		&expr.Immediate{
			Register: 1,
			Data:     binaryutil.NativeEndian.PutUint32(netlink.MakeHandle(majorOf(id), delayedClass)),
		},
		&expr.Meta{Key: expr.MetaKeyPRIORITY, SourceRegister: true, Register: 1},
	}
}

// delayLine sets the queueing disciplines of a rule at every interface, unless they are there. They
// delay nothing that no rule puts into their class.
func delayLine(r *netfault.Rule) error {
	links, err := interfaces()
	if err != nil {
		return err
	}
	for _, link := range links {
		if err := delayAt(link, r); err != nil {
			return err
		}
	}
	return nil
}

func delayAt(link netlink.Link, r *netfault.Rule) error {
	name, major := link.Attrs().Name, majorOf(r.ID)
	root, err := rootOf(link)
	if err != nil {
		return err
	}
	switch {
	case root == major:
		return nil
	case root != 0:
		return errUnsupported{fmt.Errorf(
			"interface %s has a queueing discipline already (%x:), of somebody else or of another delay", name, root)}
	}
	htb := netlink.NewHtb(netlink.QdiscAttrs{
		LinkIndex: link.Attrs().Index,
		Handle:    netlink.MakeHandle(major, 0),
		Parent:    netlink.HANDLE_ROOT,
	})
	htb.Defcls = 0 // what no rule names passes at once
	if err := netlink.QdiscAdd(htb); err != nil {
		return refusedBy("sch_htb", name, err)
	}
	class := netlink.NewHtbClass(netlink.ClassAttrs{
		LinkIndex: link.Attrs().Index,
		Parent:    netlink.MakeHandle(major, 0),
		Handle:    netlink.MakeHandle(major, delayedClass),
	}, netlink.HtbClassAttrs{Rate: fastest, Ceil: fastest})
	if err := netlink.ClassAdd(class); err != nil {
		return errors.Join(refusedBy("sch_htb", name, err), netlink.QdiscDel(htb))
	}
	held := waiting(netlink.QdiscAttrs{
		LinkIndex: link.Attrs().Index,
		Handle:    netlink.MakeHandle(major+1, 0),
		Parent:    netlink.MakeHandle(major, delayedClass),
	}, r.Delay)
	if err := netlink.QdiscAdd(held); err != nil {
		return errors.Join(refusedBy("sch_"+held.Type(), name, err), netlink.QdiscDel(htb))
	}
	return nil
}

// waiting is where packets wait in their class: a variable, as a test has to see on any kernel which
// packets do.
var waiting = func(at netlink.QdiscAttrs, d netfault.Delay) netlink.Qdisc {
	return netlink.NewNetem(at, netlink.NetemQdiscAttrs{
		Latency:   uint32(d.Latency.Microseconds()),
		Jitter:    uint32(d.Jitter.Microseconds()),
		DelayCorr: 100 * float32(d.Correlation) / netfault.Whole,
		Limit:     mostDelayed,
	})
}

// refusedBy is why a queueing discipline was not set: without its module the kernel knows no such
// kind.
func refusedBy(module, link string, err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
		return errUnsupported{fmt.Errorf(
			"the kernel has no %s, and does not load it (modprobe %s on the node): %w", module, module, err)}
	}
	return fmt.Errorf("delay packets at interface %s by %s: %w", link, module, err)
}

// removeDelayLine removes the queueing disciplines of a fault. What waits in them is lost, as any
// packet may be, and sent again.
func removeDelayLine(id string) error {
	links, err := interfaces()
	if err != nil {
		return err
	}
	for _, link := range links {
		root, err := rootOf(link)
		if err != nil {
			return err
		}
		if root != majorOf(id) {
			continue
		}
		err = netlink.QdiscDel(netlink.NewHtb(netlink.QdiscAttrs{
			LinkIndex: link.Attrs().Index,
			Handle:    netlink.MakeHandle(root, 0),
			Parent:    netlink.HANDLE_ROOT,
		}))
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove the delay at interface %s: %w", link.Attrs().Name, err)
		}
	}
	return nil
}

// interfaces are those of the namespace by which others are reached.
func interfaces() ([]netlink.Link, error) {
	all, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list the interfaces: %w", err)
	}
	var found []netlink.Link
	for _, link := range all {
		if flags := link.Attrs().Flags; flags&net.FlagLoopback == 0 && flags&net.FlagUp != 0 {
			found = append(found, link)
		}
	}
	return found, nil
}

// rootOf is the major number of the queueing discipline of an interface; 0 = it has the default one.
func rootOf(link netlink.Link) (uint16, error) {
	all, err := netlink.QdiscList(link)
	if err != nil {
		return 0, fmt.Errorf("list the queueing disciplines of interface %s: %w", link.Attrs().Name, err)
	}
	for _, qdisc := range all {
		if qdisc.Attrs().Parent == netlink.HANDLE_ROOT {
			return uint16(qdisc.Attrs().Handle >> 16), nil
		}
	}
	return 0, nil
}
