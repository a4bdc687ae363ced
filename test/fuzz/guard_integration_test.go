//go:build integration

package fuzz

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/rows"
	"github.com/redquake/redquake/internal/testing/stage"
)

// guardSeeds is how many estates TestGuardOnRealServers makes; the measurement sets it.
const guardSeeds = "REDQUAKE_GUARD_SEEDS"

// guardRow is what faults without an allowance have left of one estate's data.
type guardRow struct {
	Seed       uint64 `json:"seed"`
	Servers    string `json:"servers"` // real, or virtual
	Faults     int    `json:"faults"`
	Refused    int    `json:"refused"`
	CopiesLeft int    `json:"copiesLeft"` // of the data set of which the fewest are left, among those that must survive
	OK         bool   `json:"ok"`
}

// Random Services, selectors, StatefulSets, roles and disks of real servers, and random faults that meet there without
// an allowance: of all data that is worth a guard, which was acknowledged and replicated before, a copy is left.
func TestGuardOnRealServers(t *testing.T) {
	seeds := 1
	if text := os.Getenv(guardSeeds); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		seeds = n
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			e := newEstate(t, seed)
			e.writeData()
			row := e.breakAll()
			row.Seed = seed
			t.Logf("%+v", row)
			rows.Add(t, "REDQUAKE_GUARD_OUT", row)
			if !row.OK {
				t.Errorf("%+v; faults: %s", row, e.course())
			}
		})
	}
}

// estate is a namespace with some data sets, each in the pods of one or two StatefulSets.
type estate struct {
	*operatortest.Place
	random *rand.Rand
	data   []*dataSet
	faults []string

	mu   sync.Mutex
	dirs map[string]string // of the servers: by name where they have a disk, else by the UID of the pod
}

// dataSet is a primary with its replicas.
type dataSet struct {
	name      string
	addresses []string
	durable   []bool // whether a server comes back with its data
	sets      []*cluster.StatefulSet
}

func newEstate(t *testing.T, seed uint64) *estate {
	e := &estate{Place: operatortest.NewPlace(t), random: rand.New(rand.NewPCG(seed, 7)), dirs: map[string]string{}}
	apps := []string{"a", "b", "c"}[:1+e.random.IntN(3)]
	next := 100
	for i := range 1 + e.random.IntN(2) {
		d := &dataSet{name: fmt.Sprintf("d%d", i)}
		for n := range 1 + e.random.IntN(2) {
			e.startSet(d, fmt.Sprintf("%s-s%d", d.name, n), apps[e.random.IntN(len(apps))], 1+e.random.IntN(2),
				e.random.IntN(2) > 0, &next)
		}
		e.data = append(e.data, d)
	}
	return e
}

// startSet adds a StatefulSet to a data set.
func (e *estate) startSet(d *dataSet, name, app string, replicas int, durable bool, next *int) {
	e.T.Helper()
	first := len(d.addresses)
	for range replicas {
		d.addresses, d.durable = append(d.addresses, e.Subnet+strconv.Itoa(*next)+":6379"), append(d.durable, durable)
		*next++
	}
	indexOf := func(pod *corev1.Pod) int { return first + cluster.Ordinal(pod) }
	set := &cluster.StatefulSet{
		Client: e.Client, Namespace: e.Namespace, Name: name, Container: "redis",
		Address: func(pod *corev1.Pod) string { return hostOf(d.addresses[indexOf(pod)]) },
		Start: func(pod *corev1.Pod) (func(), <-chan struct{}, error) {
			return e.startServer(d, indexOf(pod), pod)
		},
	}
	d.sets = append(d.sets, set)
	template := corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(5)),
		Containers: []corev1.Container{
			{
				Name:  "redis",
				Image: "redis:7",
				Args:  []string{"redis-server"},
				Ports: []corev1.ContainerPort{{ContainerPort: 6379}},
			},
		},
	}
	if durable {
		template.Volumes = []corev1.Volume{
			{
				Name: "data",
				VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
				},
			},
		}
		template.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/"}}
	}
	e.Create(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"set": name}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app, "set": name}},
			Spec:       template,
		},
	}})
	stop := e.StandIn(name, e.LookEvery, func(ctx context.Context) error {
		_, err := set.Step(ctx)
		return errors.Join(err, cluster.RunHelpers(ctx, e.Client, e.Namespace))
	}, &corev1.PodList{}, &appsv1.StatefulSetList{})
	e.T.Cleanup(func() {
		stop()
		set.StopAll()
	})
}

// startServer starts a pod's server, as an entrypoint script that looks for the primary does.
func (e *estate) startServer(d *dataSet, index int, pod *corev1.Pod) (func(), <-chan struct{}, error) {
	arguments := []string{"--repl-timeout", "60"}
	key := string(pod.UID)
	if d.durable[index] {
		key = pod.Name
		arguments = append(arguments, "--appendonly", "yes", "--appendfsync", "always")
	}
	if primary := d.primaryFor(index); primary != "" {
		arguments = append(arguments, "--replicaof", hostOf(primary), "6379")
	}
	e.mu.Lock()
	dir := e.dirs[key]
	if dir == "" {
		dir = e.T.TempDir()
		e.dirs[key] = dir
	}
	e.mu.Unlock()
	redis, err := cluster.RunRedis(context.Background(), dir, hostOf(d.addresses[index]), 6379, 0, arguments...)
	if err != nil {
		return nil, nil, err
	}
	return redis.Stop, redis.Exited, nil
}

// primaryFor is the address that a server which starts replicates: the present primary, or the one of the first server;
// "" = none, it is the primary.
func (d *dataSet) primaryFor(index int) string {
	for i, address := range d.addresses {
		if i == index {
			continue
		}
		switch role, primary := stage.RoleAt(address); {
		case role == "master":
			return address
		case role == "slave" && primary == hostOf(d.addresses[index]):
			return ""
		}
	}
	if index == 0 {
		return ""
	}
	return d.addresses[0]
}

func hostOf(address string) string { return address[:len(address)-len(":6379")] }

// writeData writes a value into each data set, and waits until all servers have it.
func (e *estate) writeData() {
	e.T.Helper()
	for _, d := range e.data {
		e.Until(d.name+" is replicated", e.Patience, func() bool {
			return setPrecious(d.addresses[0], d.name) == nil && d.copies() == len(d.addresses)
		}, func() string { return fmt.Sprintf("%d of %d servers have it", d.copies(), len(d.addresses)) })
	}
}

func setPrecious(address, value string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c := clientAt(address)
	defer c.Close()
	return c.Set(ctx, "precious", value, 0).Err()
}

func clientAt(address string) *goredis.Client {
	return goredis.NewClient(&goredis.Options{
		Addr:                  address,
		MaxRetries:            -1,
		DialerRetries:         1,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
	})
}

// copies is how many servers have the value.
func (d *dataSet) copies() (n int) {
	for _, address := range d.addresses {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		c := clientAt(address)
		if value, err := c.Get(ctx, "precious").Result(); err == nil && value == d.name {
			n++
		}
		_ = c.Close()
		cancel()
	}
	return n
}

// worth reports whether data must survive: there are several copies of it, or one on a disk. A cache of one server has
// nothing to lose.
func (d *dataSet) worth() bool { return len(d.addresses) > 1 || d.durable[0] }

// breakAll lets random faults meet, and counts what they leave.
func (e *estate) breakAll() guardRow {
	e.T.Helper()
	operatortest.StartKubelet(e.Place, nil)
	operatortest.StartOperator(e.Place, operatortest.Spy{})
	bystander := operatortest.StartRedis(e.Place)
	e.Create(operatortest.NewLoadTest("run", bystander.Address(), func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Load.Duration = operatortest.Length(
			time.Hour)
	}))
	e.TestHasReason("run", e.Patience, v1alpha1.ReasonRunning)
	for n := range 4 + e.random.IntN(5) {
		f := e.newFault(fmt.Sprintf("f%d", n))
		e.Create(f)
		e.faults = append(e.faults, f.Name)
		await.Pass(time.Duration(e.random.IntN(1000))*time.Millisecond, "between two faults")
	}
	row := guardRow{Servers: "real", Faults: len(e.faults), CopiesLeft: len(e.data[0].addresses) * 4, OK: true}
	for _, name := range e.faults {
		f := e.FaultEnds(name, 2*e.Patience)
		if failed := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed); failed != nil &&
			failed.Status == metav1.ConditionTrue && failed.Reason == v1alpha1.ReasonBlastRadius {
			row.Refused++
		}
	}
	for _, d := range e.data {
		if !d.worth() {
			continue
		}
		e.Until("the servers of "+d.name+" are back", e.Patience, func() bool { return d.up() }, func() string { return "" })
		left := d.copies()
		row.CopiesLeft, row.OK = min(row.CopiesLeft, left), row.OK && left > 0
	}
	return row
}

// up reports whether all servers answer, and all replicas have copied their primary.
func (d *dataSet) up() bool {
	for _, address := range d.addresses {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		c := clientAt(address)
		err := c.Ping(ctx).Err()
		_ = c.Close()
		cancel()
		if err != nil {
			return false
		}
	}
	return true
}

// NewFault makes a random fault without an allowance.
func (e *estate) newFault(name string) *v1alpha1.RedisFault {
	kinds := []func(*v1alpha1.RedisFaultSpec){
		func(s *v1alpha1.RedisFaultSpec) { s.Action.Type = v1alpha1.FaultPodKill },
		func(s *v1alpha1.RedisFaultSpec) {
			s.Action.Type, s.Action.PodKill = v1alpha1.FaultPodKill, &v1alpha1.PodKill{GracePeriodSeconds: new(int64(0))}
		},
		func(s *v1alpha1.RedisFaultSpec) {
			s.Action.Type, s.Duration = v1alpha1.FaultPodKill, operatortest.Length(4*time.Second)
		},
		func(s *v1alpha1.RedisFaultSpec) { s.Action.Type = v1alpha1.FaultProcessCrash },
		func(s *v1alpha1.RedisFaultSpec) {
			s.Action.Type, s.Duration = v1alpha1.FaultClientPause, operatortest.Length(4*time.Second)
		},
	}
	return operatortest.NewFault(name, "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
		f.Spec.Allow = nil
		f.Spec.Trigger.After, f.Spec.Trigger.Timeout = operatortest.Length(time.Duration(e.random.IntN(3))*
			time.Second), *operatortest.Length(30 * time.Second)
		f.Spec.Target = &v1alpha1.RedisTarget{PodSelector: &metav1.LabelSelector{MatchLabels: e.labels()}}
		f.Spec.Select = v1alpha1.FaultSelector{
			Role: []v1alpha1.RedisRole{v1alpha1.RoleAny, v1alpha1.RolePrimary, v1alpha1.RoleReplica}[e.random.IntN(3)],
			Mode: []v1alpha1.SelectMode{v1alpha1.SelectOne, v1alpha1.SelectAll, v1alpha1.SelectAll}[e.random.IntN(3)],
			Pick: v1alpha1.PickRandom,
		}
		f.Spec.RecoveryDeadline = *operatortest.Length(10 * time.Second)
		kinds[e.random.IntN(len(kinds))](&f.Spec)
	})
}

// labels select the pods of an application, or of one StatefulSet.
func (e *estate) labels() map[string]string {
	d := e.data[e.random.IntN(len(e.data))]
	set := d.sets[e.random.IntN(len(d.sets))].Name
	if e.random.IntN(2) == 0 {
		return map[string]string{"set": set}
	}
	of := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: set}}
	e.Read(of)
	return map[string]string{"app": of.Spec.Template.Labels["app"]}
}

// course is what the faults did.
func (e *estate) course() string {
	var text string
	for _, name := range e.faults {
		f := e.Fault(name)
		text += fmt.Sprintf("\n%s %s of %v %s %s: %s; it hit", name, f.Spec.Action.Type,
			f.Spec.Target.PodSelector.MatchLabels, f.Spec.Select.Mode, f.Spec.Select.Role,
			operatortest.Where(f.Status.Conditions))
		for _, target := range f.Status.Targets {
			if target.InjectedAt != nil {
				text += fmt.Sprintf(" %s at %s", target.Pod, target.InjectedAt.Format("05.000"))
			}
		}
	}
	for _, d := range e.data {
		text += fmt.Sprintf("\n%s: %v, durable %v, %d copies are left", d.name, d.addresses, d.durable, d.copies())
	}
	return digest.Truncate(text, 1<<16)
}
