package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strings"

	"github.com/redquake/redquake/hack/lab/internal/netns"
	"github.com/redquake/redquake/hack/lab/internal/settings"
)

// setUpNetwork creates the network namespace with the bridge for nodes and pods. It is idempotent.
func (l *Lab) setUpNetwork() error {
	if err := l.createDir(settings.NetNSDir); err != nil {
		return err
	}
	if err := netns.Create(settings.NetNS); err != nil {
		return err
	}
	return netns.Do(settings.NetNS, func() error {
		_, err := net.InterfaceByName(settings.Bridge)
		cmd := exec.Command("ip", "-batch", "-")
		cmd.Stdin = strings.NewReader(networkCommands(err == nil))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("setting up the lab's network: %w: %s", err, bytes.TrimSpace(out))
		}
		for _, key := range []string{"net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables"} {
			if err := os.WriteFile("/proc/sys/"+key, []byte("1"), 0o644); err != nil &&
				!errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("setting %s: %w", key, err)
			}
		}
		if out, err := exec.Command("iptables", "-w", "-t", "nat", "-S").CombinedOutput(); err != nil {
			return fmt.Errorf("iptables does not work here: %w: %s", err, bytes.TrimSpace(out))
		}
		return nil
	})
}

// networkCommands are for `ip -batch`. The bridge has a fixed hardware address: otherwise it takes
// the lowest of its ports', and every pod that starts or ends may invalidate the neighbour caches
// of the others.
func networkCommands(haveBridge bool) string {
	var b strings.Builder
	b.WriteString("link set lo up\n")
	if !haveBridge {
		fmt.Fprintf(&b, "link add %s address 0a:58:c6:12:00:01 type bridge\n", settings.Bridge)
	}
	addresses := []string{settings.ControlPlaneIP}
	for _, n := range settings.Nodes {
		addresses = append(addresses, n.IP)
	}
	for _, a := range addresses {
		fmt.Fprintf(&b, "address replace %s/%d dev %s\n", a, settings.PrefixLength, settings.Bridge)
	}
	// The default route leads to the bridge: service addresses need a route to be matched by iptables
	// at all, and nothing leaves the machine.
	fmt.Fprintf(&b, "link set %s up\nroute replace default dev %s\n", settings.Bridge, settings.Bridge)
	return b.String()
}
