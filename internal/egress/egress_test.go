package egress

import "testing"

// A pattern with a star is for names below a domain, and for nothing else.
func TestHosts(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"prometheus.monitoring.svc": true, "Prometheus.Monitoring.svc.": true, "a.example.com": true, "example.com": false, "badexample.com": false,
		"prometheus.monitoring.svc.evil.com": false, "": false,
	} {
		if got := (Hosts{"prometheus.monitoring.svc", "*.example.com"}).Allows(host); got != want {
			t.Errorf("%q is allowed: %v", host, got)
		}
	}
	if !(Hosts{}).Allows("any") || (Hosts{"*"}).Allows("any") {
		t.Error("without a list every host is allowed, and * alone is none")
	}
}
