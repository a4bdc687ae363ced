package loadtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/target"
)

// scope is everything that one reconcile knows of a load test. It is filled once, before anything is decided.
type scope struct {
	test      *v1alpha1.RedisLoadTest // as read; its status is what will be written
	before    *v1alpha1.RedisLoadTest // as read, untouched
	plan      *plan.Plan              // nil when the spec cannot be planned (seen.Problem says why) or the test is over
	job       *batchv1.Job            // nil when there is none, or an old one is still going
	stale     bool                    // job was made for another generation of the spec, and the load has not begun
	pods      []corev1.Pod            // of job
	faults    []v1alpha1.RedisFault   // that say this test measures them
	run       *runs.Run               // nil before the load pods are made
	session   collect.Status          // of run
	lost      map[int]string          // load pods lost since the start: index to why
	result    *result.Load            // of the record so far
	searching *searching              // nil without spec.load.search, and before the load begins
	holes     []string                // what is missing in it, for people
	// serverCPULimit is that of Redis' containers, in cores, once the record is complete; 0 = none, or not known.
	serverCPULimit float64
	seen           lifecycle.LoadTest
}

// observe reads everything. It returns nil where the test is gone or going.
func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey) (*scope, error) {
	test := &v1alpha1.RedisLoadTest{}
	if err := r.Client.Get(ctx, key, test); apierrors.IsNotFound(err) {
		return nil, r.gone(ctx)
	} else if err != nil {
		return nil, err
	}
	if test.DeletionTimestamp != nil {
		return nil, r.gone(ctx)
	}
	s := &scope{test: test, before: test.DeepCopy(), lost: map[int]string{}}
	s.seen = lifecycle.LoadTest{
		Suspend: test.Spec.Suspend, Abort: test.Spec.Abort, TTL: state.TTL(test.Spec.TTLSecondsAfterFinished),
		Finished:  meta.IsStatusConditionTrue(test.Status.Conditions, v1alpha1.ConditionComplete) || meta.IsStatusConditionTrue(test.Status.Conditions, v1alpha1.ConditionFailed),
		Suspended: meta.IsStatusConditionTrue(test.Status.Conditions, v1alpha1.ConditionSuspended),
	}
	if test.Status.CompletionTime != nil {
		s.seen.CompletedAt = test.Status.CompletionTime.Time
	}
	if s.seen.Finished || (s.seen.Suspend && s.seen.Suspended) {
		return s, nil
	}
	return s, r.observeRun(ctx, s)
}

func (r *Reconciler) observeRun(ctx context.Context, s *scope) error {
	spec := &s.test.Spec
	s.seen.PendingSince = pendingSince(s.test, r.Clock.Now())
	s.seen.StartWithin = spec.Pods.StartDeadline.Duration
	s.seen.LostPolicy = spec.Pods.Lost
	s.seen.PodsWanted = int(spec.Pods.Count)
	if s.test.Status.StartTime != nil {
		s.seen.StartedAt = s.test.Status.StartTime.Time
	}
	s.seen.ProblemSince = problemSince(s.test, r.Clock.Now())
	if c := meta.FindStatusCondition(s.test.Status.Conditions, v1alpha1.ConditionComplete); c != nil {
		s.seen.PodsExplain = c.Message // why making the pods failed the last time
	}
	if err := r.observePlan(ctx, s); err != nil || s.seen.Problem != nil || s.plan == nil {
		return err
	}
	s.seen.RampUp, s.seen.WarmUp, s.seen.Length = s.plan.Shape.RampUp, s.plan.Shape.WarmUp, s.plan.Shape.Length()
	if extension := s.test.Spec.Load.UntilFaultsSettle; extension != nil {
		s.seen.Extension = extension.Duration
	}
	if err := r.observeChildren(ctx, s); err != nil {
		return err
	}
	if err := r.observeSession(ctx, s); err != nil {
		return err
	}
	s.observeSearch(r.Clock.Now())
	if err := r.observeLimit(ctx, s); err != nil {
		return err
	}
	return r.observeFaults(ctx, s)
}

// observePlan turns the spec into a plan. Once the load has begun its references are no longer asked for.
func (r *Reconciler) observePlan(ctx context.Context, s *scope) error {
	var addresses []string
	var err error
	if s.seen.StartedAt.IsZero() {
		addresses, err = r.addresses(ctx, s.test)
		if err == nil {
			_, err = target.LoginFor(ctx, r.Client, s.test.Namespace, &s.test.Spec.Target)
		}
		if err == nil {
			err = r.checkSentinels(ctx, s.test)
		}
	} else if s.test.Status.Target != nil {
		addresses = s.test.Status.Target.Addresses
	}
	if found, err := problem.From(err); found != nil || err != nil {
		s.seen.Problem = found
		return err
	}
	var invalid *plan.Error
	if s.plan, err = children.Plan(s.test, addresses); errors.As(err, &invalid) {
		s.seen.Problem = &problem.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: invalid.Message, Lasting: true}
		return nil
	}
	return err
}

// addresses is where the load goes: the Service's name, the given addresses, or the pods.
func (r *Reconciler) addresses(ctx context.Context, test *v1alpha1.RedisLoadTest) ([]string, error) {
	spec := &test.Spec.Target
	switch {
	case len(spec.Addresses) > 0:
		return spec.Addresses, nil
	case spec.Service != nil:
		return r.serviceAddress(ctx, test.Namespace, "spec.target.service", spec.Service.Name, spec.Service.Port)
	case spec.Sentinel != nil && spec.PodSelector == nil:
		return nil, nil // the sentinels name the servers
	}
	redis := target.Redis{Namespace: test.Namespace, Live: r.Live, Spec: spec}
	pods, err := redis.Pods(ctx)
	if err != nil {
		return nil, err
	}
	found := make([]string, len(pods))
	for i := range pods {
		found[i] = redis.Address(&pods[i])
	}
	return found, nil
}

// checkSentinels says what is missing of what the target names of its sentinels: their Service, their Secrets.
func (r *Reconciler) checkSentinels(ctx context.Context, test *v1alpha1.RedisLoadTest) error {
	s := test.Spec.Target.Sentinel
	if s == nil {
		return nil
	}
	if s.Service != nil {
		if _, err := r.serviceAddress(ctx, test.Namespace, "spec.target.sentinel.service", s.Service.Name, s.Service.Port); err != nil {
			return err
		}
	}
	_, err := target.LoginFor(ctx, r.Client, test.Namespace, &v1alpha1.RedisTarget{Auth: s.Auth, TLS: s.TLS})
	if found, ok := errors.AsType[*problem.Problem](err); ok {
		found.Message = strings.ReplaceAll(found.Message, "spec.target.", "spec.target.sentinel.")
	}
	return err
}

// serviceAddress is a Service's name and port, once it leads somewhere; field is where the spec names it.
func (r *Reconciler) serviceAddress(ctx context.Context, namespace, field, name string, port int32) ([]string, error) {
	var service corev1.Service
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &service)
	if apierrors.IsNotFound(err) {
		return nil, &problem.Problem{Reason: v1alpha1.ReasonServiceNotFound,
			Message: fmt.Sprintf("%s.name: there is no Service %q in namespace %s", field, name, namespace)}
	}
	if err != nil {
		return nil, err
	}
	if !hasPort(&service, port) {
		return nil, &problem.Problem{Reason: v1alpha1.ReasonServiceNotFound,
			Message: fmt.Sprintf("%s.port: Service %q has no port %d", field, name, port)}
	}
	if service.Spec.Type != corev1.ServiceTypeExternalName {
		ready, err := r.hasEndpoint(ctx, &service)
		if err != nil {
			return nil, err
		}
		if !ready {
			return nil, &problem.Problem{Reason: v1alpha1.ReasonNoEndpoints,
				Message: fmt.Sprintf("%s.name: Service %q has no ready endpoint, so %s leads nowhere: are the Redis pods ready, and does its selector match them?",
					field, name, net.JoinHostPort(name, strconv.Itoa(int(port))))}
		}
	}
	return []string{net.JoinHostPort(name+"."+namespace+".svc", strconv.Itoa(int(port)))}, nil
}

func hasPort(service *corev1.Service, port int32) bool {
	for _, p := range service.Spec.Ports {
		if p.Port == port {
			return true
		}
	}
	return service.Spec.Type == corev1.ServiceTypeExternalName || service.Spec.ClusterIP == corev1.ClusterIPNone
}

func (r *Reconciler) hasEndpoint(ctx context.Context, service *corev1.Service) (bool, error) {
	var slices discoveryv1.EndpointSliceList
	if err := r.Client.List(ctx, &slices, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name}); err != nil {
		return false, err
	}
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready || service.Spec.PublishNotReadyAddresses {
				return true, nil
			}
		}
	}
	return false, nil
}

// observeChildren finds the Job and its pods, and whether the Secret and the plan are there.
func (r *Reconciler) observeChildren(ctx context.Context, s *scope) error {
	namespace, name := s.test.Namespace, s.test.Name
	job := &batchv1.Job{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: children.LoadJobName(name)}, job)
	if apierrors.IsNotFound(err) || (err == nil && (job.DeletionTimestamp != nil || !metav1.IsControlledBy(job, s.test))) {
		return nil
	}
	if err != nil {
		return err
	}
	s.job = job
	// Until the load begins the spec may change: pods that were made for another generation are made anew.
	s.stale = s.seen.StartedAt.IsZero() && job.Annotations[v1alpha1.AnnotationGeneration] != strconv.FormatInt(s.test.Generation, 10)
	s.seen.Children = !s.stale
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelLoadTest: name}); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if metav1.IsControlledBy(&pod, job) {
			s.pods = append(s.pods, pod)
		}
	}
	return nil
}

// observeSession opens the test's session, tells it where the pods are, and takes its status.
func (r *Reconciler) observeSession(ctx context.Context, s *scope) error {
	if s.seen.StartedAt.IsZero() && (s.job == nil || s.stale) {
		return nil
	}
	if err := r.refuseOld(ctx, s); err != nil {
		return err
	}
	if err := r.openRun(ctx, s); err != nil || s.run == nil {
		return err
	}
	s.run.Session.SetPods(s.podAddresses())
	if err := r.resume(ctx, s); err != nil || s.seen.AgentProblem != nil {
		return err
	}
	s.session = s.run.Session.Status()
	r.observePods(s)
	if s.seen.StartedAt.IsZero() && s.seen.PodsReady < s.seen.PodsWanted {
		s.seen.PodsExplain = r.explainPods(ctx, s)
	}
	r.observeRecord(s)
	return nil
}

// refuseOld refuses to open a session again for a test that may be over: it would lose the pods that went with the Job, and store that.
func (r *Reconciler) refuseOld(ctx context.Context, s *scope) error {
	if s.seen.StartedAt.IsZero() || r.Runs.Find(s.test.UID) != nil {
		return nil
	}
	old, err := state.IsStale(ctx, r.Live, "RedisLoadTest", s.before)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if old {
		return state.ErrStale
	}
	return nil
}

// openRun sets the run, unless the Secret that it needs is gone.
func (r *Reconciler) openRun(ctx context.Context, s *scope) error {
	run, err := r.Runs.Open(s.test.UID, r.Clock.Now(), func() (*collect.Session, error) { return r.open(ctx, s) })
	switch {
	case apierrors.IsNotFound(err) && s.seen.StartedAt.IsZero():
		s.seen.Children = false // the Secret is made again
		return nil
	case apierrors.IsNotFound(err):
		s.seen.AgentProblem = &problem.Problem{Reason: v1alpha1.ReasonSecretNotFound,
			Message: fmt.Sprintf("Secret %s is gone: without it the load pods cannot be asked for what they recorded", children.AgentSecretName(s.test.Name))}
		return nil
	case err != nil:
		return err
	}
	s.run, s.seen.CollectedSince = run, run.OpenedAt
	return nil
}

// podAddresses is where each load pod that has an address is reached.
func (s *scope) podAddresses() []collect.Pod {
	addresses := make([]collect.Pod, 0, len(s.pods))
	for i := range s.pods {
		if index, ok := completionIndex(&s.pods[i]); ok && s.pods[i].Status.PodIP != "" {
			addresses = append(addresses, collect.Pod{Index: index, Name: s.pods[i].Name, Address: net.JoinHostPort(s.pods[i].Status.PodIP, strconv.Itoa(agent.Port))})
		}
	}
	return addresses
}

// resume takes up a run that began before this process collected it, unless its checkpoint cannot be read.
func (r *Reconciler) resume(ctx context.Context, s *scope) error {
	if s.seen.StartedAt.IsZero() || s.run.Begun() {
		return nil
	}
	err := s.run.Session.Resume(ctx, s.seen.StartedAt)
	if errors.Is(err, collect.ErrCheckpoint) {
		s.seen.AgentProblem = &problem.Problem{Reason: v1alpha1.ReasonResultsNotStorable,
			Message: fmt.Sprintf("ConfigMap %s: %v", children.ResultsName(s.test.Name), err)}
		return nil
	}
	if err != nil {
		return err
	}
	s.run.Begin()
	return nil
}

func (r *Reconciler) observeRecord(s *scope) {
	if s.session.Finished && s.run.EndedAt.IsZero() {
		s.run.EndedAt = r.Clock.Now()
	}
	s.seen.Stopped = s.run.Stopped
	s.seen.RecordEnded, s.seen.RecordEndedAt = s.session.Finished, s.run.EndedAt
	s.seen.Verifying, s.seen.VerifyingSays = s.session.Verifying, verifyingSays(s.session.Pods)
	s.seen.LedgerUnstored = s.session.Ledger != nil && s.test.Status.Verification == nil
	s.seen.StartReceived = s.session.AllStarted
}

func (r *Reconciler) open(ctx context.Context, s *scope) (*collect.Session, error) {
	var secret corev1.Secret
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.test.Namespace, Name: children.AgentSecretName(s.test.Name)}, &secret); err != nil {
		return nil, err
	}
	owner := s.test.DeepCopy()
	return collect.Open(collect.Config{
		Run: s.plan.Run, Step: s.plan.Interval, Ops: s.plan.Operations(), Tallies: s.plan.Tallies(), Pods: s.plan.Pods,
		Credentials: agent.Credentials{
			CertificatePEM: secret.Data[agent.KeyCertificate], PrivateKeyPEM: secret.Data[agent.KeyPrivateKey], Token: string(secret.Data[agent.KeyToken]),
		},
		Store:  resultsStore{client: r.Client, test: owner},
		Ledger: s.plan.Verify != nil && s.test.Status.Verification == nil,
		Dial:   r.Runs.Dial,
	})
}

// observeFaults finds the faults on this load: those that will hit it, and those that did.
func (r *Reconciler) observeFaults(ctx context.Context, s *scope) error {
	var all v1alpha1.RedisFaultList
	if err := r.Client.List(ctx, &all, client.InNamespace(s.test.Namespace)); err != nil {
		return err
	}
	for _, f := range all.Items {
		if awaited(&f, s.test) {
			s.seen.FaultsUnsettled = append(s.seen.FaultsUnsettled, f.Name)
		}
		if f.Status.LoadTest != s.test.Name || f.Status.StartTime == nil || !f.Status.LoadStartTime.Equal(s.test.Status.StartTime) {
			continue
		}
		s.faults = append(s.faults, f)
		if !state.IsFinished(f.Status.Conditions) {
			s.seen.FaultsUnfinished = append(s.seen.FaultsUnfinished, f.Name)
		}
	}
	return nil
}

// awaited says whether a load that goes on until its faults settle waits for this one: not for one that is held or being deleted.
func awaited(f *v1alpha1.RedisFault, test *v1alpha1.RedisLoadTest) bool {
	return f.Spec.LoadTestRef != nil && f.Spec.LoadTestRef.Name == test.Name && f.Status.SettledTime == nil && !state.IsFinished(f.Status.Conditions) &&
		f.DeletionTimestamp == nil && (!f.Spec.Suspend || f.Status.StartTime != nil)
}

// pendingSince is when the waiting for the start began: the creation, or the end of a suspension.
func pendingSince(test *v1alpha1.RedisLoadTest, now time.Time) time.Time {
	c := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionSuspended)
	switch {
	case c != nil && c.Status == metav1.ConditionTrue:
		return now // it ends just now
	case c != nil && c.LastTransitionTime.After(test.CreationTimestamp.Time):
		return c.LastTransitionTime.Time
	}
	return test.CreationTimestamp.Time
}

// problemSince is when the condition Accepted became False; now, if it has not yet.
func problemSince(test *v1alpha1.RedisLoadTest, now time.Time) time.Time {
	if c := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionAccepted); c != nil && c.Status == metav1.ConditionFalse {
		return c.LastTransitionTime.Time
	}
	return now
}
