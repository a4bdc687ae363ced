package egress

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// A pattern with a star is for names below a domain, and for nothing else. Nothing is allowed that is not named.
func TestHosts(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"prometheus.monitoring.svc": true, "Prometheus.Monitoring.svc.": true, "a.example.com": true, "example.com": false,
		"badexample.com":                     false,
		"prometheus.monitoring.svc.evil.com": false, "": false, "10.0.0.7": true, "::ffff:10.0.0.7": true, "10.0.0.8": false,
		"fd00::1": true, "fd00:0::1": true,
	} {
		if got := (Hosts{"prometheus.monitoring.svc", "*.example.com", "10.0.0.7", "fd00::1"}).Allows(host); got != want {
			t.Errorf("%q is allowed: %v", host, got)
		}
	}
	if (Hosts{}).Allows("any") || (Hosts{"*"}).Allows("any") {
		t.Error("without a list no host is allowed, and * alone is none")
	}
}

// A list that would name another host than its author thinks, or none, is refused when the manager starts.
func TestParseHosts(t *testing.T) {
	t.Parallel()
	if got, err := ParseHosts(" hooks.slack.com, *.example.com,,10.0.0.7,fd00::1,"); err != nil ||
		strings.Join(got, " ") != "hooks.slack.com *.example.com 10.0.0.7 fd00::1" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := ParseHosts(""); err != nil || len(got) != 0 {
		t.Errorf("%q, %v", got, err)
	}
	for _, wrong := range []string{
		"*", "*.", "*example.com", "a.*.com", "https://hooks.slack.com", "prometheus:9090",
		"[fd00::1]", "10.0.0.0/8", "a b", "a/b", "user@host",
	} {
		if _, err := ParseHosts("hooks.slack.com," + wrong); err == nil || !strings.Contains(err.Error(), `"`+wrong+`"`) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// Addresses of this pod, of its node and of a cloud's metadata are refused in each of their forms, unless that very
// address is named.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"10.0.0.7": true, "192.168.1.1": true, "8.8.8.8": true, "fd12:3456::1": true, "2001:4860:4860::8888": true,
		"100.64.0.1": true, "64:ff9b::8.8.8.8": true,
		"127.0.0.1": false, "127.9.9.9": false, "::1": false, "0.0.0.0": false, "0.1.2.3": false, "::": false,
		"255.255.255.255": false,
		"169.254.169.254": false, "169.254.170.2": false, "fe80::1": false, "fe80::1%eth0": false, "224.0.0.1": false,
		"ff02::1": false, "ff01::1": false,
		"fd00:ec2::254": false, "fd20:ce::254": false, "100.100.100.200": false, "168.63.129.16": false, "192.0.0.192": false,
		"::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::127.0.0.1": false, "::ffff:0:169.254.169.254": false,
		"64:ff9b::169.254.169.254": false, "64:ff9b::127.0.0.1": false, "64:ff9b::100.100.100.200": false,
		"64:ff9b:1::169.254.169.254": false, "64:ff9b:1::1": false,
		"2002:a9fe:a9fe::1": false, "2002:7f00:1::": false, "2002:808:808::1": true,
	} {
		if got := reachable(netip.MustParseAddr(address), Hosts{"monitoring.svc"}); got != want {
			t.Errorf("%s can be reached: %v", address, got)
		}
	}
	for _, named := range []string{"127.0.0.1", "169.254.169.254", "::1"} {
		address := netip.MustParseAddr(named)
		if !reachable(address, Hosts{named}) || reachable(address.Next(), Hosts{named}) {
			t.Errorf("%s is named: it alone can be reached", named)
		}
	}
	if !reachable(netip.MustParseAddr("::ffff:127.0.0.1"), Hosts{"127.0.0.1"}) {
		t.Error("an IPv4-mapped address is another one than the IPv4 address")
	}
}

// The address that is dialed is checked, and not only the name: one that is allowed may be resolved to an address of
// this pod.
func TestDialed(t *testing.T) {
	t.Parallel()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	get := func(host string, hosts Hosts) error {
		to := *at
		to.Host = host + ":" + at.Port()
		transport, err := Way{Hosts: hosts, Flag: "--hosts"}.To(&to, nil)
		if err != nil {
			return err
		}
		defer transport.CloseIdleConnections()
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, to.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	for name, tc := range map[string]struct {
		host  string
		hosts Hosts
	}{
		"no list":         {"127.0.0.1", nil},
		"another host":    {"127.0.0.1", Hosts{"elsewhere"}},
		"the name only":   {"localhost", Hosts{"localhost"}},
		"another address": {"localhost", Hosts{"localhost", "127.0.0.2"}},
	} {
		if err := get(tc.host, tc.hosts); !errors.Is(err, ErrForbidden) || !strings.Contains(err.Error(), "--hosts") ||
			asked > 0 {
			t.Errorf("%s: %v, want ErrForbidden and the flag; %d requests", name, err, asked)
		}
	}
	if err := get("localhost", Hosts{"localhost", "127.0.0.1", "::1"}); err != nil || asked != 1 {
		t.Errorf("a name and its address are allowed: %v; %d requests", err, asked)
	}
}
