package redisloadtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/loadpods"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/problem"
)

// callTimeout limits the calls of one reconcile to load pods, so that a pod that does not answer
// does not block other tests.
const callTimeout = 5 * time.Second

// observeSession opens the session of the test, updates its pods, and reads its status.
func (r *Reconciler) observeSession(ctx context.Context, s *scope) error {
	if s.seen.StartedAt.IsZero() && (s.job == nil || s.stale) {
		return nil
	}
	if err := r.rejectStale(ctx, s); err != nil {
		return err
	}
	if err := r.openRun(ctx, s); err != nil || s.run == nil {
		return err
	}
	addresses := s.podAddresses()
	s.run.Session.SetPods(addresses)
	s.seen.PodsAnswer = len(addresses) > 0
	if err := r.resume(ctx, s); err != nil || s.seen.AgentProblem != nil {
		return err
	}
	if s.session = s.run.Session.Status(); s.session.Received {
		s.run.Begin()
	}
	r.observePods(s)
	if s.seen.StartedAt.IsZero() && s.seen.PodsReady < s.seen.PodsWanted {
		s.seen.PodsExplain = r.explainPods(ctx, s)
	}
	r.observeRecord(s)
	return nil
}

// rejectStale returns ErrStale if a session would be opened for a test that may be finished: it
// would record the pods of the deleted Job as lost.
func (r *Reconciler) rejectStale(ctx context.Context, s *scope) error {
	if s.seen.StartedAt.IsZero() || r.Runs.Find(s.test.UID) != nil {
		return nil
	}
	old, err := state.IsStale(ctx, r.APIReader, "RedisLoadTest", s.before)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if old {
		return state.ErrStale
	}
	return nil
}

// openRun sets the run, unless the Secret with its credentials does not exist.
func (r *Reconciler) openRun(ctx context.Context, s *scope) error {
	run, err := r.Runs.Open(s.test.UID, r.Clock.Now(), func() (*collect.Session, error) {
		return r.open(ctx, s)
	})
	switch {
	case apierrors.IsNotFound(err) && s.seen.StartedAt.IsZero():
		s.seen.Children = false // create the Secret again
		return nil
	case apierrors.IsNotFound(err):
		s.seen.AgentProblem = &problem.Problem{
			Reason: v1alpha1.ReasonSecretNotFound,
			Message: fmt.Sprintf(
				"Secret %s was deleted: without it the records of the load pods cannot be collected",
				children.AgentSecretName(s.test)),
		}
		return nil
	case err != nil:
		return err
	}
	s.run, s.seen.CollectedSince = run, run.OpenedAt
	return nil
}

// open reads the credentials and opens a session with them.
func (r *Reconciler) open(ctx context.Context, s *scope) (*collect.Session, error) {
	var secret corev1.Secret
	if err := r.Client.Get(ctx,
		client.ObjectKey{Namespace: s.test.Namespace, Name: children.AgentSecretName(s.test)},
		&secret); err != nil {
		return nil, fmt.Errorf("read the credentials of the load pods: %w", err)
	}
	owner := s.test.DeepCopy()
	return collect.Open(collect.Config{
		Run:      s.plan.Run,
		Step:     s.plan.Interval,
		Ops:      s.plan.Operations(),
		ReadOnly: s.plan.ReadOnly(),
		Tallies:  s.plan.Tallies(),
		Pods:     s.plan.Pods,
		Credentials: agent.Credentials{
			CertificatePEM: secret.Data[agent.KeyCertificate],
			PrivateKeyPEM:  secret.Data[agent.KeyPrivateKey],
			Token:          string(secret.Data[agent.KeyToken]),
		},
		Store:  resultsStore{client: r.Client, test: owner},
		Ledger: s.plan.Verify != nil && s.test.Status.Verification == nil,
		Wall:   r.Clock.Now,
		Dial:   r.Runs.Dial,
		Memory: &r.Runs.Memory,
		Merged: r.Metrics.LoadOpened(s.test.UID, s.plan.Operations()).Add,
	})
}

// podAddresses returns the load pods that have an address.
func (s *scope) podAddresses() []collect.Pod {
	addresses := make([]collect.Pod, 0, len(s.pods))
	for i := range s.pods {
		if index, ok := loadpods.Index(&s.pods[i]); ok && s.pods[i].Status.PodIP != "" {
			addresses = append(addresses, collect.Pod{
				Index:   index,
				Name:    s.pods[i].Name,
				Address: net.JoinHostPort(s.pods[i].Status.PodIP, strconv.Itoa(agent.Port)),
			})
		}
	}
	return addresses
}

// resume continues a run that another process started, unless its checkpoint cannot be read.
func (r *Reconciler) resume(ctx context.Context, s *scope) error {
	if s.seen.StartedAt.IsZero() || s.started() {
		return nil
	}
	err := s.run.Session.Resume(ctx, s.seen.StartedAt)
	if errors.Is(err, collect.ErrCheckpoint) {
		s.seen.AgentProblem = &problem.Problem{
			Reason:  v1alpha1.ReasonResultsNotStorable,
			Message: fmt.Sprintf("ConfigMap %s: %v", children.ResultsName(s.test.Name), err),
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("resume the session: %w", err)
	}
	return nil
}

func (r *Reconciler) observeRecord(s *scope) {
	if s.session.Finished && s.run.EndedAt.IsZero() {
		s.run.EndedAt = r.Clock.Now()
	}
	s.seen.Stopped = s.run.Stopped || s.run.Ended && !s.seen.Abort
	s.seen.RecordEnded, s.seen.RecordEndedAt = s.session.Finished, s.run.EndedAt
	s.seen.Verifying, s.seen.VerifyingSays = s.session.Verifying, verifyingMessage(s.session.Pods)
	s.seen.LedgerUnstored = s.session.Ledger != nil && s.test.Status.Verification == nil
	s.seen.StartReceived = s.session.AllStarted
}
