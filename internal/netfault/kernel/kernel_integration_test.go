//go:build integration

package kernel_test

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/netfault"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/installed"
	"github.com/redquake/redquake/internal/testing/netns"
)

// patience is how long a client waits for an answer that it is to get.
const patience = time.Minute

// refusal is for how long nothing must come that is dropped.
const refusal = 300 * time.Millisecond

// world is a Redis on a host of its own, and the program that drops its packets.
type world struct {
	*testing.T
	host    *netns.Host
	program string
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, host: netns.NewHost(t, 1), program: filepath.Join(t.TempDir(), "netfault")}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", w.program, "../../../cmd/netfault")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v: %s", err, output)
	}
	server, err := installed.Find("redis-server")
	if err != nil {
		t.Fatal(err)
	}
	redis := w.host.Command(t.Context(), server, "--bind", "*", "-::*", "--protected-mode", "no", "--save", "",
		"--dir", t.TempDir())
	if err := redis.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = redis.Process.Kill()
		_ = redis.Wait() // it was killed
	})
	w.reaches(w.host.Peer, w.host.Address)
	return w
}

// run runs the program as the kubelet does: in the network of the host, until it has ended.
func (w *world) run(arguments ...string) (string, error) {
	w.Helper()
	cmd := w.host.Command(w.Context(), w.program, arguments...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	return strings.TrimSpace(string(output) + stderr.String()), err
}

func (w *world) hold(r netfault.Rule) netfault.State {
	w.Helper()
	if r.Share == 0 {
		r.Share = netfault.Whole
	}
	return w.state(netfault.HoldArguments(&r)...)
}

func (w *world) renew(r netfault.Rule) netfault.State {
	w.Helper()
	r.Share = netfault.Whole
	return w.state(netfault.RenewArguments(&r)...)
}

func (w *world) show(id string) netfault.State {
	w.Helper()
	return w.state(netfault.VerbShow, id)
}

func (w *world) state(arguments ...string) netfault.State {
	w.Helper()
	output, err := w.run(arguments...)
	if err != nil {
		w.Fatalf("%v: %v: %s", arguments, err, output)
	}
	state, err := netfault.ParseState([]byte(output))
	if err != nil {
		w.Fatal(err)
	}
	return state
}

func (w *world) release(id string) {
	w.Helper()
	if left := w.state(netfault.VerbRelease, id); left != (netfault.State{Released: true}) {
		w.Fatalf("state after the release: %+v", left)
	}
}

// ping sends a PING over a new connection from an address of the test to one of the host.
func ping(from, to netip.Addr, within time.Duration) error {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from.AsSlice()}, Timeout: within}
	conn, err := dialer.Dial("tcp", netip.AddrPortFrom(to, 6379).String())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 16))
	return err
}

func (w *world) reaches(from, to netip.Addr) {
	w.Helper()
	await.Until(w, "an answer from "+to.String()+" to "+from.String(), func() error { return ping(from, to, patience) })
}

// inForce holds a rule, as another fault if the kernel has lifted it.
func (w *world) inForce(r *netfault.Rule) {
	w.Helper()
	for w.hold(*r).Left == 0 {
		w.release(r.ID)
		r.ID += "x"
	}
}

// misses holds a rule, and expects that no answer comes while it is in force.
func (w *world) misses(r *netfault.Rule, from, to netip.Addr) {
	w.Helper()
	await.Until(w, "the rules to be in force for as long as a PING waits", func() error {
		began := time.Now()
		w.inForce(r)
		answered := ping(from, to, refusal) == nil
		if time.Since(began) > r.For { // on a machine that is very slow
			return errors.New("the kernel has lifted them meanwhile")
		}
		if answered {
			w.Errorf("%s answers %s although its packets are dropped", to, from)
		}
		return nil
	})
}

func TestRulesOfARealKernel(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	w := newWorld(t)
	peer, other := w.host.Peer, w.host.Other
	for _, c := range []struct {
		name    string
		in, out bool
	}{{"both", true, true}, {"in", true, false}, {"out", false, true}} {
		t.Run("peers are cut off: "+c.name, func(t *testing.T) {
			rule := netfault.Rule{ID: "cut-" + c.name, In: c.in, Out: c.out, Peers: []netip.Addr{peer}, For: netfault.Longest}
			w.misses(&rule, peer, w.host.Address)
			w.reaches(other, w.host.Address)
			w.reaches(w.host.Peer6, w.host.Address6)
			seen := w.hold(rule)
			if dropped := [2]bool{seen.DroppedIn > 0, seen.DroppedOut > 0}; dropped != [2]bool{c.in, c.out && !c.in} ||
				!seen.Exists || seen.Left <= 0 {
				t.Errorf("state %+v", seen)
			}
			began := time.Now()
			rule.For = 2 * time.Second
			w.hold(rule)
			w.reaches(peer, w.host.Address)
			if lasted := time.Since(began); lasted < rule.For {
				t.Errorf("the kernel lifted a cut of %v after %v", rule.For, lasted)
			}
			if seen := w.show(rule.ID); !seen.Exists || seen.Left != 0 {
				t.Errorf("state afterwards: %+v", seen)
			}
			for what, late := range map[string]netfault.State{"renewal": w.renew(rule), "hold": w.hold(rule)} {
				if !late.Exists || late.Left != 0 {
					t.Errorf("a %s that came too late has set them again: %+v", what, late)
				}
			}
			w.release(rule.ID)
			for what, late := range map[string]netfault.State{"renewal": w.renew(rule), "hold": w.hold(rule)} {
				if !late.Released {
					t.Errorf("a %s after the release has set them again: %+v", what, late)
				}
			}
		})
	}
	t.Run("all but some are cut off", func(t *testing.T) {
		rule := netfault.Rule{ID: "all", In: true, Out: true, Except: true, Peers: []netip.Addr{other}, For: netfault.Longest}
		w.misses(&rule, peer, w.host.Address)
		w.misses(&rule, w.host.Peer6, w.host.Address6)
		w.reaches(other, w.host.Address)
		w.reaches(w.host.Gateway, w.host.Address)
		if output, err := w.host.Command(t.Context(), "redis-cli", "-h", "127.0.0.1", "ping").CombinedOutput(); err != nil ||
			strings.TrimSpace(string(output)) != "PONG" {
			t.Errorf("over loopback: %v: %s", err, output)
		}
		w.release(rule.ID)
		w.reaches(peer, w.host.Address)
		w.reaches(w.host.Peer6, w.host.Address6)
		w.release(rule.ID) // it is over already
	})
	t.Run("a renewed cut lets nothing pass, and has the peers of the last call", func(*testing.T) {
		rule := netfault.Rule{ID: "renewed", In: true, Out: true, Peers: []netip.Addr{peer}, For: 2 * time.Second}
		for began := time.Now(); time.Since(began) < 2*rule.For; {
			w.misses(&rule, peer, w.host.Address)
		}
		rule.Peers, rule.For = []netip.Addr{other}, netfault.Longest
		await.Until(w, "a renewal in time", func() error {
			w.inForce(&rule)
			if w.renew(rule).Left == 0 {
				return errors.New("it came too late")
			}
			return nil
		})
		w.misses(&rule, other, w.host.Address)
		w.reaches(peer, w.host.Address)
		w.release(rule.ID)
		w.reaches(other, w.host.Address)
	})
	t.Run("two faults", func(*testing.T) {
		one := netfault.Rule{ID: "one", In: true, Peers: []netip.Addr{peer}, For: netfault.Longest}
		two := netfault.Rule{ID: "two", In: true, Peers: []netip.Addr{other}, For: netfault.Longest}
		w.misses(&one, peer, w.host.Address)
		w.misses(&two, other, w.host.Address)
		w.misses(&one, peer, w.host.Address)
		w.release(one.ID)
		w.reaches(peer, w.host.Address)
		w.misses(&two, other, w.host.Address)
		w.release(two.ID)
		w.reaches(other, w.host.Address)
	})
	t.Run("a share of the packets", func(t *testing.T) {
		const share, sent = 2000, 20000 // 20 %
		rule := netfault.Rule{ID: "loss", In: true, Peers: []netip.Addr{peer}, Share: share, For: netfault.Longest}
		conn, err := net.Dial("udp", netip.AddrPortFrom(w.host.Address, 9).String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		for n, held := 0, -1; n < sent; {
			if n%1000 == 0 && n != held { // it must be in force on a slow machine, too
				held = n
				w.hold(rule)
			}
			if _, err := conn.Write([]byte("x")); err == nil { // else it was not sent: nobody listens
				n++
			}
		}
		counted := w.show("loss")
		received := counted.DroppedIn
		if counted.SeenIn != sent {
			t.Errorf("%d of %d packets were seen", counted.SeenIn, sent)
		}
		const want, deviation = sent * share / netfault.Whole, 57 // of a binomial distribution
		if received < want-5*deviation || received > want+5*deviation {
			t.Errorf("%d of %d packets were dropped, want some %d", received, sent, want)
		}
		t.Logf("%d of %d packets were dropped", received, sent)
		w.release("loss")
	})
	t.Run("what cannot be", func(t *testing.T) {
		for _, arguments := range [][]string{
			{},
			{"jump"},
			{"show"},
			{"hold", "x"},
			{"hold", "X", "true", "true", "false", "10000", "1s", "198.18.1.1"},
			{"hold", "x", "true", "true", "false", "10000", "11s", "198.18.1.1"},
			{"hold", "x", "true", "true", "false", "10000", "1s", "nobody"},
			{"hold", "x", "false", "false", "false", "10000", "1s", "198.18.1.1"},
			{"hold", "x", "true", "false", "false", "10000", "1s", ""},
			{"hold", "x", "true", "false", "true", "0", "1s", ""},
		} {
			if output, err := w.run(arguments...); err == nil {
				t.Errorf("%q: %s", arguments, output)
			}
		}
		if seen := w.show("x"); seen.Exists {
			t.Errorf("state %+v", seen)
		}
	})
}
