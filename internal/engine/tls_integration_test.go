//go:build integration

package engine

import (
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/redistest"
	"github.com/redquake/redquake/internal/testing/tcptest"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	a := redistest.NewAuthority(t)
	address := redistest.NewServer(t, redistest.Options{TLS: a}).Address()
	good := plan.TLS{
		CAFile:     a.File("ca.crt"),
		CertFile:   a.File("client.crt"),
		KeyFile:    a.File("client.key"),
		ServerName: redistest.ServerName,
	}
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
	wantReason(t, planTo(address, func(s *plan.TLS) {
		s.CertFile = ""
		s.KeyFile = ""
	}), plan.TLSFailed, "client certificate")
	p := planTo(redistest.Start(t).Address(), func(*plan.TLS) {}) // the other protocol is tried after a dial has timed out
	p.Client.DialTimeout = 10 * time.Second
	wantReason(t, p, plan.TLSFailed, "does not use TLS")
	for _, protocol := range []int{2, 3} {
		p := realPlan(address)
		p.Client.Protocol = protocol
		wantReason(t, p, plan.TLSFailed, "uses TLS")
	}
}

// TestTLSRecordsInPieces: records arrive in pieces, several at once, and replies that are larger than the loop's
// buffer.
func TestTLSRecordsInPieces(t *testing.T) {
	t.Parallel()
	a := redistest.NewAuthority(t)
	server := redistest.NewServer(t, redistest.Options{TLS: a})
	for _, size := range []int{10, 3000, 200_000} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			p := realPlan(inPieces(t, server.Address()))
			p.Target.TLS = &plan.TLS{
				CAFile:     a.File("ca.crt"),
				CertFile:   a.File("client.crt"),
				KeyFile:    a.File("client.key"),
				ServerName: redistest.ServerName,
			}
			p.Client.Pipeline, p.Client.Connections = 4, 3
			p.Workload.Values = plan.Values{MinBytes: size, MaxBytes: size}
			p.Shape = plan.Shape{Users: 12, Requests: 600}
			if o := runPlan(t, p); o.sum.OK != 600 {
				t.Error(describe(o))
			}
		})
	}
}

// inPieces starts a proxy that passes on the server's data in pieces of random sizes, and returns its address.
func inPieces(t *testing.T, server string) string {
	t.Helper()
	return tcptest.Proxy(t, server, func(to, from net.Conn, answers bool) {
		if !answers {
			_, _ = io.Copy(to, from)
			return
		}
		for {
			if _, err := io.CopyN(to, from, 1+rand.Int64N(5)); err != nil {
				return
			}
			if _, err := io.CopyN(to, from, 1+rand.Int64N(9000)); err != nil {
				return
			}
		}
	})
}
