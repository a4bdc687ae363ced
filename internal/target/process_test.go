package target_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/apitest"
	"github.com/redquake/redquake/internal/testing/sim"
)

// The recorded process is found at the present address of its pod, and no other one is taken for it; without the API
// server only it is recognized.
func TestLocate(t *testing.T) {
	const old, other = "10.0.0.2:6379", "10.0.0.9:6379"
	for _, tc := range []struct {
		name    string
		uid     types.UID // of the pod; "" = there is none
		ip      string    // of the pod
		servers []string  // addresses where one runs; the first is the recorded process
		down    bool      // the API server does not answer
		restart bool      // of the first server
		want    target.Process
		exists  bool
		err     bool
	}{
		{
			name:    "as recorded",
			uid:     "u",
			ip:      "10.0.0.2",
			servers: []string{old},
			want:    target.Process{Identity: target.Original, Address: old},
			exists:  true,
		},
		{
			name:    "at a new address",
			uid:     "u",
			ip:      "10.0.0.9",
			servers: []string{other},
			want:    target.Process{Identity: target.Original, Address: other},
			exists:  true,
		},
		{
			name:    "restarted",
			uid:     "u",
			ip:      "10.0.0.2",
			servers: []string{old},
			restart: true,
			want:    target.Process{Identity: target.Successor, Address: old},
			exists:  true,
		},
		{
			name:    "restarted at a new address, and the old one is another server's",
			uid:     "u",
			ip:      "10.0.0.9",
			servers: []string{other, old},
			restart: true,
			want:    target.Process{Identity: target.Successor, Address: other},
			exists:  true,
		},
		{name: "without an address", uid: "u", err: true},
		{
			name:    "replaced",
			uid:     "v",
			ip:      "10.0.0.9",
			servers: []string{old, other},
			want:    target.Process{Identity: target.Replacement, Address: other},
		},
		{name: "about to be replaced", uid: "v", want: target.Process{Identity: target.Replacement}},
		{name: "gone", want: target.Process{}},
		{
			name:    "no API server",
			down:    true,
			servers: []string{old},
			want:    target.Process{Identity: target.Original, Address: old},
			exists:  true,
		},
		{
			name:    "no API server, and another process at the address",
			down:    true,
			servers: []string{old},
			restart: true,
			err:     true,
		},
		{name: "no API server, and no server", down: true, err: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			redis := sim.NewRedis()
			var runID string
			for i, address := range tc.servers {
				server := redis.Add(address, "")
				server.Start()
				found, err := redis.Ask(t.Context(), address, target.Redis{}.Login)
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					runID = found.RunID
				}
				if i == 0 && tc.restart {
					server.Kill()
					server.Start()
				}
			}
			cluster := fake.NewClientBuilder().WithScheme(apitest.Scheme(t))
			if tc.uid != "" {
				cluster.WithObjects(&corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "redis-0", UID: tc.uid},
					Status:     corev1.PodStatus{PodIP: tc.ip},
				})
			}
			live := cluster.Build()
			if tc.down {
				live = interceptor.NewClient(live, interceptor.Funcs{
					Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
						return errors.New("connection refused")
					},
				})
			}
			r := target.Redis{Namespace: "shop", Live: live, Servers: redis, Spec: &v1alpha1.RedisTarget{}}
			recorded := &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u", Address: old, RunID: runID}
			got, err := r.Locate(t.Context(), recorded)
			if got != tc.want || (err != nil) != tc.err {
				t.Errorf("%+v, %v; want %+v", got, err, tc.want)
			}
			if exists, err := r.PodExists(t.Context(), recorded); exists != tc.exists || (err != nil) != tc.err {
				t.Errorf("the pod exists: %v, %v", exists, err)
			}
		})
	}
}
