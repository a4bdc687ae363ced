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
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
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
func (r *Reconciler) observeSession(ctx context.Context, s *scope.Test) error {
	if s.Seen.StartedAt.IsZero() && (s.Job == nil || s.Stale) {
		return nil
	}
	if err := r.rejectStale(ctx, s); err != nil {
		return err
	}
	if err := r.openRun(ctx, s); err != nil || s.Run == nil {
		return err
	}
	addresses := podAddresses(s)
	s.Run.Session.SetPods(addresses)
	s.Seen.PodsAnswer = len(addresses) > 0
	err := r.resume(ctx, s)
	if err != nil || s.Seen.AgentProblem != nil {
		return err
	}
	if s.Session = s.Run.Session.Status(); s.Session.Received {
		s.Run.Begin()
	}
	r.observePods(s)
	if s.Seen.StartedAt.IsZero() && s.Seen.PodsReady < s.Seen.PodsWanted {
		s.Seen.PodsExplain = r.explainPods(ctx, s)
	}
	r.observeRecord(s)
	return nil
}

// rejectStale returns ErrStale if a session would be opened for a test that may be finished: it
// would record the pods of the deleted Job as lost.
func (r *Reconciler) rejectStale(ctx context.Context, s *scope.Test) error {
	if s.Seen.StartedAt.IsZero() || r.Runs.Find(s.Test.UID) != nil {
		return nil
	}
	old, err := state.IsStale(ctx, r.APIReader, "RedisLoadTest", s.Before)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if old {
		return state.ErrStale
	}
	return nil
}

// openRun sets the run, unless the Secret with its credentials does not exist.
func (r *Reconciler) openRun(ctx context.Context, s *scope.Test) error {
	run, err := r.Runs.Open(s.Test.UID, r.Clock.Now(), func() (*collect.Session, error) {
		return r.open(ctx, s)
	})
	switch {
	case apierrors.IsNotFound(err) && s.Seen.StartedAt.IsZero():
		s.Seen.Children = false // create the Secret again
		return nil
	case apierrors.IsNotFound(err):
		s.Seen.AgentProblem = &problem.Problem{
			Reason: v1alpha1.ReasonSecretNotFound,
			Message: fmt.Sprintf(
				"Secret %s was deleted: without it the records of the load pods cannot be collected",
				children.AgentSecretName(s.Test)),
		}
		return nil
	case err != nil:
		return err
	}
	s.Run, s.Seen.CollectedSince = run, run.OpenedAt
	return nil
}

// open reads the credentials and opens a session with them.
func (r *Reconciler) open(ctx context.Context, s *scope.Test) (*collect.Session, error) {
	var secret corev1.Secret
	err := r.Client.Get(ctx,
		client.ObjectKey{Namespace: s.Test.Namespace, Name: children.AgentSecretName(s.Test)},
		&secret)
	if err != nil {
		return nil, fmt.Errorf("read the credentials of the load pods: %w", err)
	}
	owner := s.Test.DeepCopy()
	return collect.Open(collect.Config{
		Run:      s.Plan.Run,
		Step:     s.Plan.Interval,
		Ops:      s.Plan.Operations(),
		ReadOnly: s.Plan.ReadOnly(),
		Tallies:  s.Plan.Tallies(),
		Pods:     s.Plan.Pods,
		Credentials: agent.Credentials{
			CertificatePEM: secret.Data[agent.KeyCertificate],
			PrivateKeyPEM:  secret.Data[agent.KeyPrivateKey],
			Token:          string(secret.Data[agent.KeyToken]),
		},
		Store: resultsStore{client: r.Client, test: owner},
		Wanted: collect.Wanted{
			Ledger:     s.Plan.Verify != nil && s.Test.Status.Verification == nil,
			Guarantees: s.Plan.Workload.HasGuarantees() && s.Test.Status.Guarantees == nil,
		},
		Wall:   r.Clock.Now,
		Dial:   r.Runs.Dial,
		Memory: &r.Runs.Memory,
		Merged: r.Metrics.LoadOpened(s.Test.UID, s.Plan.Operations()).Add,
	})
}

// podAddresses returns the load pods that have an address.
func podAddresses(s *scope.Test) []collect.Pod {
	addresses := make([]collect.Pod, 0, len(s.Pods))
	for i := range s.Pods {
		index, ok := loadpods.Index(&s.Pods[i])
		if ok && s.Pods[i].Status.PodIP != "" {
			addresses = append(addresses, collect.Pod{
				Index:   index,
				Name:    s.Pods[i].Name,
				Address: net.JoinHostPort(s.Pods[i].Status.PodIP, strconv.Itoa(agent.Port)),
			})
		}
	}
	return addresses
}

// resume continues a run that another process started, unless its checkpoint cannot be read.
func (r *Reconciler) resume(ctx context.Context, s *scope.Test) error {
	if s.Seen.StartedAt.IsZero() || s.Started() {
		return nil
	}
	err := s.Run.Session.Resume(ctx, s.Seen.StartedAt)
	if errors.Is(err, collect.ErrCheckpoint) {
		s.Seen.AgentProblem = &problem.Problem{
			Reason:  v1alpha1.ReasonResultsNotStorable,
			Message: fmt.Sprintf("ConfigMap %s: %v", children.ResultsName(s.Test.Name), err),
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("resume the session: %w", err)
	}
	return nil
}

func (r *Reconciler) observeRecord(s *scope.Test) {
	if s.Session.Finished && s.Run.EndedAt.IsZero() {
		s.Run.EndedAt = r.Clock.Now()
	}
	s.Seen.Stopped = s.Run.Stopped || s.Run.Ended && !s.Seen.Abort
	s.Seen.RecordEnded, s.Seen.RecordEndedAt = s.Session.Finished, s.Run.EndedAt
	s.Seen.Verifying, s.Seen.VerifyingSays = s.Session.Verifying, verifyingMessage(s.Session.Pods)
	s.Seen.ResultUnstored = s.Session.Ledger != nil && s.Test.Status.Verification == nil ||
		s.Session.Guarantees != nil && s.Test.Status.Guarantees == nil
	s.Seen.StartReceived = s.Session.AllStarted
}
