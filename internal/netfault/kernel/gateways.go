//go:build linux

package kernel

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
)

// gateways are the addresses to which a namespace sends what is for no network of its own. In a pod
// that is mostly the node, as the pod sees it, from where the kubelet's probes come.
func gateways() ([]netip.Addr, error) {
	var all []netip.Addr
	for _, table := range []struct {
		file string
		read func(line string) (netip.Addr, error)
	}{{"/proc/net/route", gateway4}, {"/proc/net/ipv6_route", gateway6}} {
		file, err := os.Open(table.file)
		if errors.Is(err, os.ErrNotExist) { // a kernel without IPv6
			continue
		} else if err != nil {
			return nil, fmt.Errorf("open the routes: %w", err)
		}
		found, err := readRoutes(file, table.read)
		_ = file.Close() // it was only read
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", table.file, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

func readRoutes(from io.Reader, read func(line string) (netip.Addr, error)) ([]netip.Addr, error) {
	var all []netip.Addr
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		gateway, err := read(lines.Text())
		if err != nil {
			return nil, err
		}
		if gateway.IsValid() && !gateway.IsUnspecified() {
			all = append(all, gateway)
		}
	}
	return all, lines.Err()
}

// gateway4 is the gateway of a default route; the zero value for other routes. The line is: device,
// destination, gateway, five numbers and the mask, addresses as numbers in the byte order of the
// host (proc_net_route in the kernel's net/ipv4/fib_trie.c).
func gateway4(line string) (netip.Addr, error) {
	fields := strings.Fields(line)
	const destination, gateway, mask, zero = 1, 2, 7, "00000000"
	if len(fields) <= mask || fields[destination] != zero || fields[mask] != zero {
		return netip.Addr{}, nil
	}
	b, err := hex.DecodeString(fields[gateway])
	if err != nil || len(b) != 4 {
		return netip.Addr{}, fmt.Errorf("a gateway is %q", fields[gateway])
	}
	var address [4]byte
	binary.NativeEndian.PutUint32(address[:], binary.BigEndian.Uint32(b))
	return netip.AddrFrom4(address), nil
}

// gateway6 is the same for IPv6. The line is: destination, the length of its prefix, source, the
// length of its prefix, gateway, four numbers and the device, addresses byte by byte
// (rt6_info_route in the kernel's net/ipv6/route.c).
func gateway6(line string) (netip.Addr, error) {
	fields := strings.Fields(line)
	const prefix, gateway = 1, 4
	if len(fields) <= gateway || fields[prefix] != "00" {
		return netip.Addr{}, nil
	}
	b, err := hex.DecodeString(fields[gateway])
	address, ok := netip.AddrFromSlice(b)
	if err != nil || !ok {
		return netip.Addr{}, fmt.Errorf("a gateway is %q", fields[gateway])
	}
	return address, nil
}
