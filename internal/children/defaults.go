package children

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Defaulted returns a copy of spec with the defaults of the CRD. The API server sets them too; an object from a file never passed it.
func Defaulted(spec *v1alpha1.RedisLoadTestSpec) *v1alpha1.RedisLoadTestSpec {
	s := spec.DeepCopy()
	orElse(&s.Target.Topology, v1alpha1.TopologyAuto)
	if s.Target.Service != nil {
		orElse(&s.Target.Service.Port, 6379)
	}
	if s.Target.Sentinel != nil && s.Target.Sentinel.Service != nil {
		orElse(&s.Target.Sentinel.Service.Port, 26379)
	}

	orElse(&s.Client.Connections, 50)
	orElse(&s.Client.Pipeline, 1)
	orElse(&s.Client.DialTimeout, metav1.Duration{Duration: time.Second})
	orElse(&s.Client.RequestTimeout, metav1.Duration{Duration: time.Second})
	orElse(&s.Client.Protocol, v1alpha1.RESP3)
	orElse(&s.Client.ReadFrom, v1alpha1.ReadFromPrimary)
	orElse(&s.Client.Mode, v1alpha1.ClientDedicated)
	orElse(&s.Client.Driver, v1alpha1.DriverNative)

	defaultWorkload(&s.Workload)
	orElse(&s.Workload.Keyspace.Prefix, "rq:")
	orElse(&s.Workload.Keyspace.Keys, 100_000)
	orElse(&s.Workload.Keyspace.Distribution, "Uniform")

	if l := s.Load.Search; l != nil {
		orElse(&l.From, 1000)
		orElse(&l.To, 1_000_000)
		orElse(&l.Precision, "5%")
		orElse(&l.Trial, metav1.Duration{Duration: 10 * time.Second})
		orElse(&l.Settle, metav1.Duration{Duration: 2 * time.Second})
	}

	orElse(&s.Pods.Count, 1)
	orElse(&s.Pods.Lost, v1alpha1.LostPodFail)
	orElse(&s.Pods.StartDeadline, metav1.Duration{Duration: 2 * time.Minute})

	// Zero means something in these two: it switches off.
	if s.Probe.Rate == nil {
		s.Probe.Rate = new(int32(100))
	}
	if s.Observe.RedisInfo == nil {
		s.Observe.RedisInfo = &metav1.Duration{Duration: time.Second}
	}
	if s.Verify != nil {
		orElse(&s.Verify.Share, "1%")
	}
	orElse(&s.Observe.Interval, metav1.Duration{Duration: 100 * time.Millisecond})
	return s
}

func defaultWorkload(w *v1alpha1.Workload) {
	for i := range w.Commands {
		orElse(&w.Commands[i].Weight, 1)
	}
	if r := w.Ranking; r != nil {
		orElse(&r.ScoreSpread, 100_000)
		orElse(&r.FindCount, 100)
	}
	if c := w.CacheAside; c != nil {
		orElse(&c.Mode, v1alpha1.CacheAsideThroughCache)
	}
	if h := w.HTTP; h != nil {
		orElse(&h.Method, "GET")
		if h.KeepAlive == nil {
			h.KeepAlive = new(true)
		}
	}
}

// orElse sets *field where it has its zero value.
func orElse[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
