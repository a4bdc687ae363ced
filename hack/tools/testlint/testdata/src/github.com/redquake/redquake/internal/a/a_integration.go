//go:build integration && linux

package a

import (
	"context"
	"net"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/prometheustest"
)

func sleeps() {
	time.Sleep(time.Minute) // want `wait with await.Until`
	await.Pass(time.Millisecond, "the length of the outage")
}

type outage struct{ Value, AtMost v1alpha1.Duration }

var measured = outage{AtMost: v1alpha1.DurationOf(time.Second)} // no limit: a figure

type place struct{}

func (place) eventually(what string, check func() bool) {}

func asks(s *prometheustest.Server, p place) {
	s.Ask("up") // want `Prometheus is asked once`
	await.Until(nil, "up", func() error {
		_, err := s.Ask("up")
		return err
	})
	p.eventually("up", func() bool {
		n, _ := s.Ask("up")
		return n > 0
	})
	func() { s.Ask("up") }()                          // want `Prometheus is asked once`
	_ = "http://localhost:9090/api/v1/query?query=up" // want `Prometheus is asked once`
	await.Until(nil, "a series", func() error {
		_ = "http://localhost:9090/api/v1/query?query=up"
		return nil
	})
}

const short, long = 4 * time.Second, 5 * time.Second

func calls(ctx context.Context, c net.Conn) {
	context.WithTimeout(ctx, short) // want `a limit below 5s: timeout of WithTimeout`
	context.WithTimeout(ctx, long)
	context.WithDeadline(ctx, time.Now().Add(short)) // want `a limit below 5s: d of WithDeadline`
	net.DialTimeout("tcp", "", time.Second)          // want `a limit below 5s: timeout of DialTimeout`
	c.SetReadDeadline(time.Now().Add(time.Second))   // want `a limit below 5s: t of SetReadDeadline`
	c.SetReadDeadline(time.Now().Add(time.Hour))
	await.Within(nil, time.Second, "x", nil) // want `a limit below 5s: limit of Within`
	select {
	case <-time.After(time.Second): // want `a limit below 5s`
	case <-time.After(time.Minute):
	case <-ctx.Done():
	}
}

type Duration struct{ time.Duration }

type client struct {
	RequestTimeout       time.Duration
	DialTimeout          *Duration
	LeaseDurationSeconds *int32
	TimeoutSeconds       int
	Every                time.Duration
	Deadline             Duration
}

func fields(given time.Duration) client {
	c := client{
		RequestTimeout:       2 * time.Second,                       // want `a limit below 5s: RequestTimeout`
		DialTimeout:          new(Duration{500 * time.Millisecond}), // want `a limit below 5s: DialTimeout`
		LeaseDurationSeconds: new(int32(3)),                         // want `a limit below 5s: LeaseDurationSeconds`
		TimeoutSeconds:       10,
		Every:                time.Second,
	}
	c.RequestTimeout = 0 // none
	c.RequestTimeout = given
	c.RequestTimeout, c.Every = time.Minute, time.Second
	c.Deadline.Duration = time.Second // want `a limit below 5s: Deadline`
	const patience = time.Second      // want `a limit below 5s: patience`
	return c
}

func texts(run func(...string)) {
	_ = "global: {scrape_interval: 500ms, scrape_timeout: 500ms}" // want `a limit below 5s: scrape_timeout`
	_ = "global: {scrape_interval: 10s, scrape_timeout: 10s}"
	_ = `readinessProbe: {timeoutSeconds: 1}` // want `a limit below 5s: timeoutSeconds`
	_ = `{"requestTimeout": "1s"}`            // want `a limit below 5s: requestTimeout`
	_ = "the timeout of 2s has passed"
	run("--timeout=1s")    // want `a limit below 5s: --timeout`
	run("--timeout", "1s") // want `a limit below 5s: --timeout`
	run("--timeout", "1m")
	run("--duration", "1s")
}

func bounds(began, ended time.Time) bool {
	if time.Since(began) > time.Second { // want `an upper bound below 5s`
		return false
	}
	return ended.Sub(began) > time.Second && // want `an upper bound below 5s`
		ended.Sub(began) < time.Second && // a lower bound
		time.Since(began) > time.Minute
}
