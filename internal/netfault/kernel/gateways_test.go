//go:build linux

package kernel

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestGateways(t *testing.T) {
	for _, c := range []struct {
		name, routes, want string
		read               func(string) (netip.Addr, error)
	}{
		{
			"IPv4", "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n" +
				"eth0\t00000000\t010112C6\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
				"eth0\t000112C6\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n" +
				"tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0\n" +
				"tun1\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0\n", "198.18.1.1", gateway4,
		},
		{
			"IPv6", "fd180001000000000000000000000000 40 00000000000000000000000000000000 00 " +
				"00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0\n" +
				"00000000000000000000000000000000 00 00000000000000000000000000000000 00 " +
				"fd180001000000000000000000000001 00000400 00000001 00000000 00000003     eth0\n" +
				"00000000000000000000000000000000 00 00000000000000000000000000000000 00 " +
				"00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n", "fd18:1::1", gateway6,
		},
	} {
		found, err := readRoutes(strings.NewReader(c.routes), c.read)
		if err != nil || !slices.Equal(found, []netip.Addr{netip.MustParseAddr(c.want)}) {
			t.Errorf("%s: %v, %v", c.name, found, err)
		}
	}
	for _, line := range []string{
		"eth0 00000000 gateway 0003 0 0 0 00000000", "eth0 00000000 0101 0003 0 0 0 00000000",
	} {
		if _, err := gateway4(line); err == nil {
			t.Errorf("%q has a gateway", line)
		}
	}
	if _, err := gateway6("00 00 00 00 0101 0"); err == nil {
		t.Error("a short address of IPv6 is accepted")
	}
}
