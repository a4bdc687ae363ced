//go:build integration

package controllers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
)

// brief is an election in which the leadership is lost and won in seconds.
var brief = Election{
	Name:          leaseName,
	LeaseDuration: 6 * time.Second,
	RenewDeadline: 4 * time.Second,
	RetryPeriod:   time.Second,
}

// A process with a fault in force goes on when it loses its leadership, and leads again: with another manager. That one
// must act on what the cluster is now, not on what it was under the first: a new object is reconciled, an abort obeyed,
// and both are in statuses. Whatever took the leadership, and however often.
func TestLeadsAgain(t *testing.T) {
	t.Parallel()
	env, on := ownControlPlane(t)
	p := on(t)
	redis := startRedis(p)
	startKubelet(p, nil)
	o := p.startElected()
	p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(50)), Duration: length(2 * time.Hour)}
	}))
	p.testHasReason("run", time.Minute, v1alpha1.ReasonRunning)

	apiServer := pidOf(t, "kube-apiserver", "--secure-port="+portOf(env.Config.Host))
	etcd := pidOf(t, "etcd", "--advertise-client-urls="+env.ControlPlane.Etcd.URL.String())
	stopped := func(pid int, d time.Duration) func() {
		return func() {
			wake := stop(t, pid)
			await.Pass(d, "what is tested is the time without an answer")
			wake()
		}
	}
	losses := []struct {
		name string
		lose func()
	}{
		{"API server stopped for 14 s", stopped(apiServer, 14*time.Second)},
		{"API server stopped for 32 s", stopped(apiServer, 32*time.Second)},
		{"etcd stopped for 14 s", stopped(etcd, 14*time.Second)},
	}
	for i := range 10 {
		losses = append(losses, struct {
			name string
			lose func()
		}{fmt.Sprintf("lease taken and given back, %d", i+1), func() { p.takeLease() }})
	}
	for i, loss := range losses {
		name := fmt.Sprintf("held-%d", i)
		p.create(newFault(name, "run", v1alpha1.FaultConfig, func(f *v1alpha1.RedisFault) {
			f.Spec.Action.Config = &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"hz": "77"}}
			f.Spec.Duration, f.Spec.Trigger.After, f.Spec.RecoveryDeadline = length(time.Hour), length(0), *length(time.Second)
		}))
		p.faultHasReason(name, time.Minute, v1alpha1.ReasonActive)
		before := p.holder()
		loss.lose()
		back := time.Now()
		await.Until(t, loss.name+": the process leads again", func() error {
			if now := p.holder(); now == "" || now == "another" || now == before {
				return fmt.Errorf("the lease is held by %q, before by %q", now, before)
			}
			return nil
		})
		fresh := fmt.Sprintf("new-%d", i)
		p.create(newLoadTest(fresh, redis.address(), func(test *v1alpha1.RedisLoadTest) { test.Spec.Suspend = true }))
		p.testHasReason(fresh, time.Minute, v1alpha1.ReasonSuspended)
		t.Logf("%s: a new object had a status %s after its end", loss.name, time.Since(back).Round(time.Millisecond))
		p.mustChange(change(p, &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(f *v1alpha1.RedisFault) {
			f.Spec.Abort = true
		}))
		if f := p.faultEnds(name, time.Minute); reason(f.Status.Conditions) != v1alpha1.ReasonAborted ||
			f.Status.RevertedAt == nil || redis.setting("hz", "") != "10" {
			t.Fatalf("%s: %s, reverted at %v, hz is %s", loss.name, where(f.Status.Conditions), f.Status.RevertedAt,
				redis.setting("hz", ""))
		}
	}
	// A manager that leads and reconciles is well: its probes must not end it. It follows its own Lease in the cache.
	await.Pass(stalledUnready/2, "what is tested is a figure that grows with time if the copy of the Lease is old")
	await.Until(t, "the manager has not stalled", func() error {
		if age := o.gathered(t).sum("redquake_manager_stalled_seconds"); age > 2*leaseReadEvery.Seconds() {
			return fmt.Errorf("redquake_manager_stalled_seconds is %g", age)
		}
		return nil
	})
}

// A process without a fault goes on as well: the kubelet would start it again ever later. Here a restart would end the
// test, as the process has ended.
func TestLeadsAgainWithoutFaults(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	redis := startRedis(p)
	p.startElected()
	for i := range 3 {
		name := fmt.Sprintf("new-%d", i)
		p.create(newLoadTest(name, redis.address(), func(test *v1alpha1.RedisLoadTest) { test.Spec.Suspend = true }))
		p.testHasReason(name, time.Minute, v1alpha1.ReasonSuspended)
		before := p.holder()
		p.takeLease()
		await.Until(t, "the process leads again", func() error {
			if now := p.holder(); now == "" || now == "another" || now == before {
				return fmt.Errorf("the lease is held by %q, before by %q", now, before)
			}
			return nil
		})
	}
}

// startElected starts an operator process that acts only while it leads. It must not end before the test. Its Lease is
// in its own namespace, which it does not watch.
func (p *place) startElected() *operator {
	p.t.Helper()
	o := newOperator(time.Now)
	process := newProcess(p.config, p.namespace, p.home(), o.Intercept(spy{}), o.Intercept(spy{}))
	election := brief
	election.Namespace = p.home()
	p.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.home()}})
	process.Election, process.Runs, process.Metrics = &election, o.sessions, o.metrics
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := process.Run(ctx); err != nil && ctx.Err() == nil {
			p.t.Errorf("the process has ended: %v", err)
		}
	}()
	p.t.Cleanup(func() {
		cancel()
		<-done
		process.Sessions.Close()
		o.sessions.Close()
	})
	return o
}

// lease reads the Lease of the operators.
func (p *place) lease() *coordinationv1.Lease {
	p.t.Helper()
	lease := &coordinationv1.Lease{}
	if err := p.client.Get(context.Background(), client.ObjectKey{Namespace: p.home(), Name: leaseName},
		lease); client.IgnoreNotFound(err) != nil {
		p.t.Fatal(err)
	}
	return lease
}

// holder is who holds the lease; "" = nobody.
func (p *place) holder() string {
	p.t.Helper()
	if holder := p.lease().Spec.HolderIdentity; holder != nil {
		return *holder
	}
	return ""
}

// takeLease takes the lease until its holder has given up, and gives it back.
func (p *place) takeLease() {
	p.t.Helper()
	lease := p.lease()
	before := lease.DeepCopy()
	now := metav1.NowMicro()
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = new("another"), new(int32(3600)),
		&now
	p.mustChange(p.client.Patch(context.Background(), lease, client.MergeFrom(before)))
	await.Pass(brief.RenewDeadline+brief.RetryPeriod, "the time after which the holder gives up")
	p.mustChange(p.client.Delete(context.Background(), lease))
}

// portOf is the port of a URL or an address.
func portOf(host string) string { return strings.TrimRight(host[strings.LastIndex(host, ":")+1:], "/") }
