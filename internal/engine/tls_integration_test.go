//go:build integration

package engine

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/redistest"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	a := redistest.NewAuthority(t)
	address := redistest.NewServer(t, redistest.Options{TLS: a}).Address()
	good := plan.TLS{CAFile: a.File("ca.crt"), CertFile: a.File("client.crt"), KeyFile: a.File("client.key"), ServerName: redistest.ServerName}
	planTo := func(address string, change func(*plan.TLS)) *plan.Plan {
		p := realPlan(address)
		settings := good
		change(&settings)
		p.Target.TLS = &settings
		p.Shape = plan.Shape{Users: 10, Requests: 2000}
		return p
	}
	for _, pipeline := range []int{1, 16} {
		p := planTo(address, func(*plan.TLS) {})
		p.Client.Pipeline = pipeline
		o := runPlan(t, p)
		t.Log(describe(o))
		if o.sum.OK != 2000 || o.sum.Sent != 2000 || o.probe.Fail > 0 {
			t.Errorf("pipeline %d: %s", pipeline, describe(o))
		}
	}
	wantReason(t, planTo(address, func(s *plan.TLS) { s.CAFile = "" }), plan.TLSFailed, "untrusted authority")
	wantReason(t, planTo(address, func(s *plan.TLS) { s.ServerName = "other.test" }), plan.TLSFailed, "other.test")
	wantReason(t, planTo(address, func(s *plan.TLS) { s.CAFile += ".missing" }), plan.TLSFailed, "no such file")
	wantReason(t, planTo(address, func(s *plan.TLS) { s.CertFile, s.KeyFile = "", "" }), plan.TLSFailed, "client certificate")
	p := planTo(redistest.Start(t).Address(), func(*plan.TLS) {}) // the other protocol is tried after a dial has timed out
	p.Client.DialTimeout = 3 * time.Second
	wantReason(t, p, plan.TLSFailed, "does not use TLS")
	for _, protocol := range []int{2, 3} {
		p := testPlan(address)
		p.Client.Protocol = protocol
		wantReason(t, p, plan.TLSFailed, "uses TLS")
	}
}
