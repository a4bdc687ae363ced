//go:build integration

package scale

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

func valueOf(server *redistest.Server, setting string) string {
	return redistest.Pairs(server.Do("config", "get", setting))[setting]
}

// scaleTo does what kubectl scale does.
func (s *scaleStage) scaleTo(n int32) {
	s.T.Helper()
	set := s.set()
	set.Spec.Replicas = &n
	faulttest.Must(s.T, s.Cluster.Update(s.T.Context(), set))
	s.settle()
}

// orphan does what kubectl delete --cascade=orphan does.
func (s *scaleStage) orphan(set *appsv1.StatefulSet) {
	s.T.Helper()
	s.Hooks.Delete = func(ctx context.Context, c client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
		return c.Delete(ctx, o)
	}
	faulttest.Must(s.T, s.Cluster.Delete(s.T.Context(), set))
}

// addsReplicas is a primary and a replica, in whose StatefulSet the fault adds a replica with these lines in its
// configuration.
func addsReplicas(t *testing.T, lines ...string) *scaleStage {
	t.Helper()
	r := redistest.NewReplication(t, 1, redistest.Options{})
	return newScaleStage(t, func(string) *redistest.Server {
		added := r.AddReplica(r.Primary)
		for _, line := range lines {
			setting, value, _ := strings.Cut(line, " ")
			added.Do("config", "set", setting, value)
		}
		return added
	}, r.Servers()...)
}

// A pod that the fault has added stays where somebody else has scaled on: it may become the primary again, by the value
// that it had. What somebody else has set meanwhile stays.
func TestBarIsLiftedWhereSomebodyElseScales(t *testing.T) {
	redistest.Each(t, testBarIsLiftedWhereSomebodyElseScales)
}

func testBarIsLiftedWhereSomebodyElseScales(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line   string // of the added server's configuration
		during string // what somebody else sets during the fault
		want   string
		says   string
	}{
		"the default": {
			want: "100",
			says: "redis-2 stays, and may become the primary again (replica-priority 100)",
		},
		"a value of its own": {
			line: "replica-priority 50",
			want: "50",
			says: "redis-2 stays, and may become the primary again (replica-priority 50)",
		},
		"never was to be one":    {line: "replica-priority 0", want: "0"},
		"somebody else's by now": {during: "7", want: "7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lines []string
			if tc.line != "" {
				lines = append(lines, tc.line)
			}
			s := addsReplicas(t, lines...)
			spec := scaleBy(1)
			_, target := s.Aim(spec)
			s.inject(spec, target)
			if got := valueOf(s.servers["redis-2"], "replica-priority"); got != "0" {
				t.Fatalf("the added replica has replica-priority %s", got)
			}
			if tc.during != "" {
				s.servers["redis-2"].Do("config", "set", "replica-priority", tc.during)
			}
			s.scaleTo(4)
			for range 2 { // each time it is said
				err := faulttest.Called(s.Reborn(spec).Revert(t.Context(), target))
				if err == nil || !strings.Contains(err.Error(), "has 4 replicas, neither the 2 from before the fault nor its 3") ||
					!strings.Contains(err.Error(), tc.says) || tc.says == "" && strings.Contains(err.Error(), "replica-priority") {
					t.Errorf("%v, want %q", err, tc.says)
				}
			}
			s.expectReplicas(4)
			if got := valueOf(s.servers["redis-2"], "replica-priority"); got != tc.want {
				t.Errorf("replica-priority of the pod that stays is %s, want %s", got, tc.want)
			}
			if by := s.Reborn(spec).ManualRevertCommand(target); strings.Contains(by, "replica-priority") {
				t.Errorf("manual command: %s", by)
			}
			s.scaleTo(3) // the revert goes on
			s.revert(spec, target)
			s.expectReplicas(2)
		})
	}
}

func TestBarIsLiftedInACluster(t *testing.T) { redistest.Each(t, testBarIsLiftedInACluster) }

func testBarIsLiftedInACluster(t *testing.T) {
	t.Parallel()
	s, _ := newClusterStage(t, func(c *redistest.Cluster, _ string) *redistest.Server { return c.AddNode() })
	spec := scaleBy(1)
	_, target := s.Aim(spec)
	s.inject(spec, target)
	if got := valueOf(s.servers["redis-6"], "cluster-replica-no-failover"); got != "yes" {
		t.Fatalf("the added replica has cluster-replica-no-failover %s", got)
	}
	by := s.Reborn(spec).ManualRevertCommand(target)
	if want := "; if redis-6 is to stay instead, kubectl -n shop exec redis-6 -c redis -- redis-cli -e " +
		"-p "; !strings.Contains(by, want) || !strings.HasSuffix(by, "CONFIG SET cluster-replica-no-failover no") {
		t.Errorf("manual command: %s", by)
	}
	s.scaleTo(8)
	err := faulttest.Called(s.Reborn(spec).Revert(t.Context(), target))
	if err == nil || !strings.Contains(err.Error(),
		"redis-6 stays, and may become the primary again (cluster-replica-no-failover no)") {
		t.Errorf("%v", err)
	}
	if got := valueOf(s.servers["redis-6"], "cluster-replica-no-failover"); got != "no" {
		t.Errorf("cluster-replica-no-failover of the pod that stays is %s", got)
	}
}

// However the revert ends without removing an added pod, it is not barred any more.
func TestBarIsLiftedHoweverTheRevertEnds(t *testing.T) {
	t.Parallel()
	leave := func(ctx context.Context, i contract.Injector, target *v1alpha1.FaultTarget) error {
		return i.(contract.Leaver).Leave(ctx, target)
	}
	revert := func(ctx context.Context, i contract.Injector, target *v1alpha1.FaultTarget) error {
		return faulttest.Called(i.Revert(ctx, target))
	}
	for name, tc := range map[string]struct {
		happens func(t *testing.T, s *scaleStage)
		end     func(ctx context.Context, i contract.Injector, target *v1alpha1.FaultTarget) error
	}{
		"given up": {func(*testing.T, *scaleStage) {}, leave},
		"the StatefulSet is replaced, its pods stay": {func(t *testing.T, s *scaleStage) {
			set := s.set()
			s.orphan(set)
			again := &appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name, UID: "another"},
				Spec:       set.Spec,
			}
			faulttest.Must(t, s.Cluster.Create(t.Context(), again))
		}, revert},
		"the StatefulSet is deleted, its pods stay": {func(_ *testing.T, s *scaleStage) { s.orphan(s.set()) }, revert},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := addsReplicas(t)
			spec := scaleBy(1)
			_, target := s.Aim(spec)
			s.inject(spec, target)
			tc.happens(t, s)
			for range 2 {
				if err := tc.end(t.Context(), s.Reborn(spec), target); err != nil {
					t.Fatal(err)
				}
				if got := valueOf(s.servers["redis-2"], "replica-priority"); got != "100" {
					t.Errorf("replica-priority of the pod that stays is %s", got)
				}
			}
		})
	}
}

// A user who may not set the bar has nothing to take back either.
func TestBarThatWasRefusedIsNotLifted(t *testing.T) {
	t.Parallel()
	r := redistest.NewReplication(t, 1, redistest.Options{Users: []string{"ctl on >pw +@all -config|set"}})
	s := newScaleStage(t, func(string) *redistest.Server { return r.AddReplica(r.Primary) }, r.Servers()...)
	s.Login.Username, s.Login.Password = "ctl", "pw"
	spec := scaleBy(1)
	_, target := s.Aim(spec)
	s.inject(spec, target)
	s.scaleTo(4)
	if err := faulttest.Called(s.Reborn(spec).Revert(t.Context(), target)); err == nil ||
		strings.Contains(err.Error(), "replica-priority") {
		t.Errorf("%v", err)
	}
}

// The injection fails half-way, between the bar and the sync: the operator dies after any step, also before it could
// store that it has barred the server.
func TestBarIsLiftedAfterHalfAnInjection(t *testing.T) {
	t.Parallel()
	s := addsReplicas(t)
	spec := scaleBy(1)
	_, target := s.Aim(spec)
	stored := target
	await.Until(t, "the added replica is barred", func() error {
		stored = target.DeepCopy()
		err := faulttest.Called(s.Reborn(spec).Inject(t.Context(), target))
		var steps *faulttest.Pending
		if err != nil && !errors.As(err, &steps) {
			t.Fatal(err)
		}
		s.settle()
		if server := s.servers["redis-2"]; server == nil || valueOf(server, "replica-priority") != "0" {
			return errors.Join(errors.New("not yet"), err)
		}
		return nil
	})
	s.scaleTo(5)
	if err := faulttest.Called(s.Reborn(spec).Inject(t.Context(), stored)); err == nil ||
		!strings.Contains(err.Error(), "somebody else scales it") {
		t.Errorf("inject: %v", err)
	}
	if err := faulttest.Called(s.Reborn(spec).Revert(t.Context(), stored)); err == nil ||
		!strings.Contains(err.Error(), "redis-2 stays, and may become the primary again") {
		t.Errorf("revert: %v", err)
	}
	if got := valueOf(s.servers["redis-2"], "replica-priority"); got != "100" {
		t.Errorf("replica-priority of the pod that stays is %s", got)
	}
}

// Sentinel rewrites the files of replicas during a failover: the bar would be in force again after the next start, also
// in the next pod on the same volume.
func TestBarIsTakenOutOfTheFile(t *testing.T) { redistest.Each(t, testBarIsTakenOutOfTheFile) }

func testBarIsTakenOutOfTheFile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		during []string
		stays  bool
		doubt  bool
	}{
		"of a pod that stays":       {during: []string{"rewrite"}, stays: true},
		"of a pod that is removed":  {during: []string{"rewrite"}},
		"of a pod that may have it": {during: []string{"rewrite", "resetstat"}, stays: true, doubt: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := addsReplicas(t)
			spec := scaleBy(1)
			_, target := s.Aim(spec)
			s.inject(spec, target)
			added := s.servers["redis-2"]
			for _, command := range tc.during {
				added.Do("config", command)
			}
			if tc.stays {
				s.scaleTo(4)
				if err := faulttest.Called(s.Reborn(spec).Revert(t.Context(), target)); err == nil {
					t.Error("the revert is complete")
				}
			} else {
				s.revert(spec, target)
			}
			warnings := s.Reborn(spec).(contract.Warner).Warnings(target)
			if inFile := strings.Contains(faulttest.FileOf(t, added), "\nreplica-priority 0"); inFile != tc.doubt {
				t.Errorf("the bar is in the file: %t", inFile)
			}
			if tc.doubt != (len(warnings) == 1) ||
				tc.doubt && !strings.Contains(warnings[0], "kubectl -n shop exec redis-2 -c redis -- redis-cli -e -p") {
				t.Errorf("warnings %q", warnings)
			}
		})
	}
}
