//go:build integration && linux

package kernel

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/redquake/redquake/internal/netfault"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/netns"
)

// delayTo delays what is sent to a peer.
func delayTo(peer netip.Addr) *netfault.Rule {
	return &netfault.Rule{
		ID: "a1", Out: true, Peers: []netip.Addr{peer}, Share: netfault.Whole, For: netfault.Longest,
		Delay: netfault.Delay{Latency: 50 * time.Millisecond},
	}
}

// send sends some packets to a peer, which nobody receives there.
func send(t *testing.T, to netip.Addr, packets int) {
	t.Helper()
	conn, err := net.Dial("udp", netip.AddrPortFrom(to, 9).String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for sent := 0; sent < packets; {
		if _, err := conn.Write([]byte("x")); err == nil { // else of the one before: nobody receives it
			sent++
		}
	}
}

// waited is how many packets have passed the class of a fault at all interfaces.
func waited(t *testing.T, id string) (packets uint32) {
	t.Helper()
	links, err := interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		classes, err := netlink.ClassList(link, netlink.MakeHandle(majorOf(id), 0))
		if err != nil {
			t.Fatal(err)
		}
		for _, class := range classes {
			if s := class.Attrs().Statistics; s != nil {
				packets += s.Basic.Packets
			}
		}
	}
	return packets
}

// nothingLeft checks that every interface has the queueing discipline that it had.
func nothingLeft(t *testing.T) {
	t.Helper()
	links, err := interfaces()
	if err != nil {
		t.Fatal(err)
	}
	if len(links) == 0 {
		t.Fatal("there is no interface")
	}
	for _, link := range links {
		if root, err := rootOf(link); err != nil || root != 0 {
			t.Errorf("interface %s has %x: (%v)", link.Attrs().Name, root, err)
		}
	}
}

// What is sent to a peer waits in the class of the fault, and nothing else does, until the kernel opens the gate by
// itself, or the fault is released.
func TestDelayedPackets(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	former := waiting
	waiting = func(at netlink.QdiscAttrs, _ netfault.Delay) netlink.Qdisc {
		return &netlink.GenericQdisc{QdiscAttrs: at, QdiscType: "pfifo"}
	}
	defer func() { waiting = former }()
	peer, other := netns.NewHost(t, 1), netns.NewHost(t, 2)
	rule := delayTo(peer.Address)
	for range 2 { // the second time by a process that does not know of the first
		if s, err := Hold(rule); err != nil || s.Left == 0 || s.Unsupported != "" {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	send(t, peer.Address, 7)
	send(t, other.Address, 5)
	await.Until(t, "what is sent to the peer waits in the class of the fault", func() error {
		s, err := Show(rule.ID)
		if err != nil {
			return err
		}
		return await.That(waited(t, rule.ID) == 7 && s.DroppedOut == 7, "%d waited; %+v", waited(t, rule.ID), s)
	})
	if s, err := Hold(delayOf(rule, "b2")); err != nil || !strings.Contains(s.Unsupported, "has a queueing discipline already") || s.Exists {
		t.Errorf("a second delay: %+v, %v", s, err)
	}
	short := *rule
	short.For = time.Millisecond
	if _, err := Renew(&short); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the kernel opens the gate", func() error {
		s, err := Show(rule.ID)
		return await.That(err == nil && s.Left == 0, "%+v, %v", s, err)
	})
	send(t, peer.Address, 3)
	if n := waited(t, rule.ID); n != 7 {
		t.Errorf("%d packets waited, after the gate was opened", n)
	}
	if s, err := Release(rule.ID); err != nil || !s.Released {
		t.Errorf("%+v, %v", s, err)
	}
	nothingLeft(t)
}

func delayOf(r *netfault.Rule, id string) *netfault.Rule {
	another := *r
	another.ID = id
	return &another
}

// A kernel with netem delays the packets; one without says so, and nothing is left of the attempt.
func TestNetem(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	peer := netns.NewHost(t, 1)
	rule := delayTo(peer.Address)
	tried, err := Try(rule)
	if err != nil {
		t.Fatal(err)
	}
	nothingLeft(t)
	held, err := Hold(rule)
	if err != nil || held.Unsupported != tried.Unsupported {
		t.Fatalf("%+v, %v; the attempt had %+v", held, err, tried)
	}
	if tried.Unsupported != "" {
		if !strings.Contains(tried.Unsupported, "the kernel has no sch_netem") || held.Exists {
			t.Errorf("%+v", held)
		}
		nothingLeft(t)
		return
	}
	took := make([]time.Duration, 5)
	for i := range took {
		began := time.Now()
		conn, err := net.Dial("tcp", netip.AddrPortFrom(peer.Address, 9).String()) // is refused, after a round trip
		if err == nil {
			_ = conn.Close()
		}
		took[i] = time.Since(began)
		if took[i] < rule.Delay.Latency {
			t.Errorf("a round trip took %v", took[i])
		}
	}
	fmt.Println("round trips", took)
	if _, err := Release(rule.ID); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t)
}
