//go:build integration

package operator

import (
	"context"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/stage"
)

// brief is an election in which the leadership is lost and won in seconds.
var brief = controllers.Election{
	Name:          operatortest.LeaseName,
	LeaseDuration: 6 * time.Second,
	RenewDeadline: 4 * time.Second,
	RetryPeriod:   time.Second,
}

// A process with a fault in force goes on when it loses its leadership, and leads again: with another manager. That one
// must act on what the cluster is now, not on what it was under the first: a new object is reconciled, an abort obeyed,
// and both are in statuses. Whatever took the leadership, and however often.
func TestLeadsAgain(t *testing.T) {
	t.Parallel()
	env, on := stage.OwnControlPlane(t)
	p := on(t)
	redis := operatortest.StartRedis(p)
	operatortest.StartKubelet(p, nil)
	o := startElected(p)
	p.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(50)), Duration: operatortest.Length(2 * time.Hour)}
	}))
	p.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)

	apiServer := stage.PidOf(t, "kube-apiserver", "--secure-port="+stage.PortOf(env.Config.Host))
	etcd := stage.PidOf(t, "etcd", "--advertise-client-urls="+env.ControlPlane.Etcd.URL.String())
	stopped := func(pid int, d time.Duration) func() {
		return func() {
			wake := stage.Stop(t, pid)
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
		}{fmt.Sprintf("lease taken and given back, %d", i+1), func() { takeLease(p) }})
	}
	for i, loss := range losses {
		name := fmt.Sprintf("held-%d", i)
		p.Create(operatortest.NewFault(name, "run", v1alpha1.FaultConfig, func(f *v1alpha1.RedisFault) {
			f.Spec.Action.Config = &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"hz": "77"}}
			f.Spec.Duration, f.Spec.Trigger.After, f.Spec.RecoveryDeadline = operatortest.Length(time.Hour),
				operatortest.Length(0), *operatortest.Length(time.Second)
		}))
		p.FaultHasReason(name, time.Minute, v1alpha1.ReasonActive)
		before := holder(p)
		loss.lose()
		back := time.Now()
		await.Until(t, loss.name+": the process leads again", func() error {
			if now := holder(p); now == "" || now == "another" || now == before {
				return fmt.Errorf("the lease is held by %q, before by %q", now, before)
			}
			return nil
		})
		fresh := fmt.Sprintf("new-%d", i)
		p.Create(operatortest.NewLoadTest(fresh, redis.Address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Suspend = true
		}))
		p.TestHasReason(fresh, time.Minute, v1alpha1.ReasonSuspended)
		t.Logf("%s: a new object had a status %s after its end", loss.name, time.Since(back).Round(time.Millisecond))
		p.MustChange(operatortest.Change(p, &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}},
			func(f *v1alpha1.RedisFault) {
				f.Spec.Abort = true
			}))
		if f := p.FaultEnds(name, time.Minute); operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonAborted ||
			f.Status.RevertedAt == nil || redis.Setting("hz", "") != "10" {
			t.Fatalf("%s: %s, reverted at %v, hz is %s", loss.name, operatortest.Where(f.Status.Conditions), f.Status.RevertedAt,
				redis.Setting("hz", ""))
		}
	}
	// A manager that leads and reconciles is well: its probes must not end it. It follows its own Lease in the cache.
	await.Pass(controllers.StalledUnready/2,
		"what is tested is a figure that grows with time if the copy of the Lease is old")
	await.Until(t, "the manager has not stalled", func() error {
		if age := o.Gathered(t).Sum("redquake_manager_stalled_seconds"); age > 2*controllers.LeaseReadEvery.Seconds() {
			return fmt.Errorf("redquake_manager_stalled_seconds is %g", age)
		}
		return nil
	})
}

// A process without a fault goes on as well: the kubelet would start it again ever later. Here a restart would end the
// test, as the process has ended.
func TestLeadsAgainWithoutFaults(t *testing.T) {
	t.Parallel()
	p := operatortest.NewPlace(t)
	redis := operatortest.StartRedis(p)
	startElected(p)
	for i := range 3 {
		name := fmt.Sprintf("new-%d", i)
		p.Create(operatortest.NewLoadTest(name, redis.Address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Suspend = true
		}))
		p.TestHasReason(name, time.Minute, v1alpha1.ReasonSuspended)
		before := holder(p)
		takeLease(p)
		await.Until(t, "the process leads again", func() error {
			if now := holder(p); now == "" || now == "another" || now == before {
				return fmt.Errorf("the lease is held by %q, before by %q", now, before)
			}
			return nil
		})
	}
}

// startElected starts an operator process that acts only while it leads. It must not end before the test. Its Lease is
// in its own namespace, which it does not watch.
func startElected(p *operatortest.Place) *operatortest.Operator {
	p.T.Helper()
	o := operatortest.NewOperator(time.Now)
	process := operatortest.NewProcess(p.Config, p.Namespace, p.Home(), o.Intercept(operatortest.Spy{}),
		o.Intercept(operatortest.Spy{}))
	election := brief
	election.Namespace = p.Home()
	p.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Home()}})
	process.Election, process.Runs, process.Metrics = &election, o.Sessions, o.Metrics
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := process.Run(ctx); err != nil && ctx.Err() == nil {
			p.T.Errorf("the process has ended: %v", err)
		}
	}()
	p.T.Cleanup(func() {
		cancel()
		<-done
		process.Sessions.Close()
		o.Sessions.Close()
	})
	return o
}

// lease reads the Lease of the operators.
func lease(p *operatortest.Place) *coordinationv1.Lease {
	p.T.Helper()
	lease := &coordinationv1.Lease{}
	if err := p.Client.Get(context.Background(), client.ObjectKey{Namespace: p.Home(), Name: operatortest.LeaseName},
		lease); client.IgnoreNotFound(err) != nil {
		p.T.Fatal(err)
	}
	return lease
}

// holder is who holds the lease; "" = nobody.
func holder(p *operatortest.Place) string {
	p.T.Helper()
	if holder := lease(p).Spec.HolderIdentity; holder != nil {
		return *holder
	}
	return ""
}

// takeLease takes the lease until its holder has given up, and gives it back.
func takeLease(p *operatortest.Place) {
	p.T.Helper()
	lease := lease(p)
	before := lease.DeepCopy()
	now := metav1.NowMicro()
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = new("another"), new(int32(3600)),
		&now
	p.MustChange(p.Client.Patch(context.Background(), lease, client.MergeFrom(before)))
	await.Pass(brief.RenewDeadline+brief.RetryPeriod, "the time after which the holder gives up")
	p.MustChange(p.Client.Delete(context.Background(), lease))
}
