package dial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis"
)

// Timing of reconnects. A new attempt starts while older ones are still waiting for TCP: after a
// pod is killed its address drops SYNs, and one hanging dial must not set a lower bound on the
// measured outage. Once TCP is established the server itself is slow; further dials would only add
// connections that it has to accept when it recovers, or overflow its backlog.
const (
	backoffFirst = time.Millisecond
	BackoffLast  = 50 * time.Millisecond
	HedgeAfter   = 100 * time.Millisecond
)

// attempt is the result of one dial.
type attempt struct {
	line  Line
	err   error
	began time.Time
}

// Connect dials until a connection is established or ctx ends (then the error is ctx's). It starts
// immediately; failed attempts are retried with a backoff of 1 ms that doubles to 50 ms, with
// jitter. While all attempts are waiting for TCP it starts another one every 50 to 150 ms, up to
// Timeout/100ms concurrently. The first success wins and the others are cancelled. failed is called
// in the caller's goroutine for each failed attempt; it may be nil.
func (d *Dialer) Connect(
	ctx context.Context, failed func(err error, began time.Time),
) (Line, error) {
	attempts, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan attempt)
	most := max(1, int(d.Timeout/HedgeAfter))
	pending, backoff, begun := 0, backoffFirst, 0
	var greeting atomic.Int64
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return Line{}, ctx.Err()
		case <-timer.C:
			if pending == 0 || pending < most && greeting.Load() == 0 && d.takeHedge() {
				go d.try(attempts, begun, pending > 0, &greeting, results)
				begun++
				pending++
			}
			// spreads the dials of connections that broke together
			timer.Reset(HedgeAfter/2 + rand.N(HedgeAfter))
		case a := <-results:
			pending--
			if a.err == nil {
				return a.line, nil
			}
			if ctx.Err() != nil {
				return Line{}, ctx.Err()
			}
			if failed != nil {
				failed(a.err, a.began)
			}
			// The backoff counts from the start of the attempt: after an attempt that hung for longer there
			// is no further wait.
			timer.Reset(max(0, Jitter(backoff)-time.Since(a.began)))
			backoff = min(2*backoff, BackoffLast)
		}
	}
}

// try makes one attempt and delivers its result, or closes the connection if ctx has ended.
func (d *Dialer) try(
	ctx context.Context, number int, hedge bool, greeting *atomic.Int64, results chan<- attempt,
) {
	began := time.Now()
	c, err := d.Dial(ctx, number, greeting)
	if hedge {
		<-d.Hedges
	}
	select {
	case results <- attempt{c, err, began}:
	case <-ctx.Done():
		if err == nil {
			_ = c.Close()
		}
	}
}

// takeHedge takes a token for one more concurrent attempt, if one is left: thousands of connections
// that dial an unreachable address must not exhaust the local ports.
func (d *Dialer) takeHedge() bool {
	select {
	case d.Hedges <- struct{}{}:
		return true
	default:
		return false
	}
}

// Jitter returns a random duration between d/2 and d.
func Jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1)
}

// Budget limits one attempt of a step that dials several servers: three dial timeouts, at least 5
// s.
func Budget(c plan.Client) time.Duration {
	return max(3*c.DialTimeout, 5*time.Second)
}

// Login reads the password and certificate files. It is called for every dial, so that rotated
// secrets and certificates are picked up.
func Login(
	username string, secret func() (string, error), t *plan.TLS,
) (redis.Login, *redis.DialError) {
	l := redis.Login{Username: username}
	var err error
	if t != nil {
		if l.TLS, err = TLSConfig(t); err != nil {
			return l, &redis.DialError{Stage: redis.StageTLS, Err: err}
		}
	}
	if l.Password, err = secret(); err != nil {
		return l, &redis.DialError{Stage: redis.StageSetup, Err: err}
	}
	return l, nil
}

// ReadPassword reads a password file; "" = no password.
func ReadPassword(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	b, err := os.ReadFile(file)
	return strings.TrimRight(string(b), "\r\n"), err
}

// TLSConfig reads the files of t. Without ServerName, the dialer sets the name.
func TLSConfig(t *plan.TLS) (*tls.Config, error) {
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.InsecureSkipVerify, //nolint:gosec // explicitly requested by the user
	}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s contains no certificate", t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
