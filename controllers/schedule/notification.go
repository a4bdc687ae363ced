package schedule

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/egress"
	"github.com/redquake/redquake/internal/notify"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target/credentials"
)

// secretPoll is how often a Secret is read again that is missing or cannot be used: nothing says
// when it changes.
const secretPoll = time.Minute

// condition is Notified as a report sets it.
type condition struct {
	is              metav1.ConditionStatus
	reason, message string
}

func (done *report) set(is metav1.ConditionStatus, reason, message string) {
	done.condition = &condition{is, reason, message}
}

// noMore says when a notification that was given up is tried again.
const noMore = "there are no more until another run ends, or the spec changes"

// webhook is where notifications of a schedule go, and what they look like.
type webhook struct {
	url      *url.URL
	template *notify.Template
}

// look checks how a schedule notifies, and does so if that is due. Its error is one of the API
// server.
func (n *Notifier) look(ctx context.Context, e *v1alpha1.RedisExperimentSchedule) (report, error) {
	done := report{uid: e.UID, generation: e.Generation}
	if e.Spec.Notify == nil {
		return done, nil
	}
	done.notification = e.Status.Notification.DeepCopy()
	known := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionNotified)
	if known != nil && known.ObservedGeneration != e.Generation && done.notification != nil {
		done.notification.Attempt = nil // another spec may work
	}
	hook, err := n.webhookOf(ctx, e)
	found, err := problem.From(err)
	switch {
	case err != nil:
		return done, err
	case found != nil:
		done.set(metav1.ConditionFalse, found.Reason, found.Message)
		if known == nil || known.Reason != found.Reason {
			done.event = warning(v1alpha1.ReasonNotificationFailed, found.Message)
		}
		if !found.Lasting {
			done.again = n.Clock.Now().Add(secretPoll)
		}
	default:
		n.notify(ctx, e, hook, known, &done)
	}
	return done, nil
}

// notify notifies of the state of a schedule if that is due.
func (n *Notifier) notify(
	ctx context.Context, e *v1alpha1.RedisExperimentSchedule, hook webhook, known *metav1.Condition,
	done *report,
) {
	last, tried := notified(done.notification)
	now, ended := notify.StateOf(e.Status.History, regressedOf(e), last)
	if !ended {
		done.set(metav1.ConditionUnknown, v1alpha1.ReasonNothingToNotify,
			"no run has ended yet; the template and the Secret are valid")
		return
	}
	due := notify.Due(now, last, tried, n.Clock.Now())
	switch {
	case last != nil && last.Same(now):
		done.notification.Attempt = nil // of a change that was reversed
		done.set(metav1.ConditionTrue, v1alpha1.ReasonNotified, notifiedOf(last.Run))
	case due.After(n.Clock.Now()):
		done.again = due
	case !due.IsZero():
		n.send(ctx, e, hook, last, now, done)
	// given up, and the condition does not say so any more
	case known == nil || known.Reason != v1alpha1.ReasonNotificationFailed:
		done.set(metav1.ConditionFalse, v1alpha1.ReasonNotificationFailed,
			fmt.Sprintf("spec.notify: %d attempts to notify of run %s have failed; %s", tried.Count, now.Run,
				noMore))
	}
}

// webhookOf reads and checks where notifications go. A Problem names the field.
func (n *Notifier) webhookOf(
	ctx context.Context, e *v1alpha1.RedisExperimentSchedule,
) (webhook, error) {
	template, err := notify.Parse(e.Spec.Notify.Template)
	if err != nil {
		return webhook{}, problem.Invalid("spec.notify.template: %s", err)
	}
	const field = "spec.notify.urlSecretRef"
	at, err := credentials.WebhookURL(ctx, n.Client, e.Namespace, field, e.Spec.Notify.URLSecretRef)
	if err != nil {
		return webhook{}, err
	}
	err = n.Notify.Check(at)
	if errors.Is(err, egress.ErrForbidden) {
		return webhook{}, &problem.Problem{
			Reason:  v1alpha1.ReasonInvalidSpec,
			Message: field + ": " + err.Error(),
		}
	}
	return webhook{at, template}, nil
}

// send tries to notify of a state once.
func (n *Notifier) send(
	ctx context.Context, e *v1alpha1.RedisExperimentSchedule, hook webhook, last *notify.State,
	now notify.State, done *report,
) {
	run := e.Status.History[len(e.Status.History)-1]
	start := ""
	if run.StartTime != nil {
		start = run.StartTime.UTC().Format(time.RFC3339)
	}
	body, err := hook.template.Body(notify.NewMessage(e.Namespace, e.Name, last, now,
		n.why(ctx, e, run), start))
	if err != nil {
		done.set(metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec, "spec.notify.template: "+err.Error())
		done.event = warning(v1alpha1.ReasonNotificationFailed, done.condition.message)
		return
	}
	err = n.Notify.Send(ctx, hook.url, fmt.Sprintf("%s-%s", e.UID, now.Run), body)
	at := metav1.NewTime(n.Clock.Now().Truncate(time.Second))
	if done.notification == nil {
		done.notification = &v1alpha1.ScheduleNotification{}
	}
	if err == nil {
		*done.notification = v1alpha1.ScheduleNotification{
			Run:       now.Run,
			Verdict:   now.Verdict,
			Regressed: now.Regressed,
			Time:      &at,
		}
		message := notifiedOf(now.Run)
		done.set(metav1.ConditionTrue, v1alpha1.ReasonNotified, message)
		done.event = &notice{corev1.EventTypeNormal, v1alpha1.ReasonNotified, message}
		log.FromContext(ctx).Info("Notified of a run", "run", now.Run, "verdict", now.Verdict,
			"regressed", now.Regressed)
		return
	}
	done.failed(now.Run, at, err)
	log.FromContext(ctx).V(1).Info("The notification of a run was not accepted", "run", now.Run,
		"attempt", done.notification.Attempt.Count, "error", err.Error())
}

// failed counts an attempt that the server has not accepted.
func (done *report) failed(run string, at metav1.Time, err error) {
	count := int32(1)
	before := done.notification.Attempt
	if before != nil && before.Run == run {
		count += before.Count
	}
	done.notification.Attempt = &v1alpha1.NotificationAttempt{
		Run:   run,
		Count: count,
		Time:  at,
	}
	message := fmt.Sprintf("spec.notify: attempt %d of %d to notify of run %s: %s", count,
		notify.MostAttempts, run, err)
	if count < notify.MostAttempts {
		done.again = at.Add(notify.WaitAfter(int(count)))
		message += "; the next one is at " + done.again.UTC().Format(time.RFC3339)
	} else {
		message += "; " + noMore
	}
	done.set(metav1.ConditionFalse, v1alpha1.ReasonNotificationFailed, message)
	if count == 1 || count == notify.MostAttempts {
		done.event = warning(v1alpha1.ReasonNotificationFailed, message)
	}
}

// notifiedOf is the message of the condition Notified while nothing changes.
func notifiedOf(run string) string {
	return "notified of run " + run + ", and nothing has changed since"
}

// why is what has regressed, or why a run has not passed, as far as that is known.
func (n *Notifier) why(
	ctx context.Context, e *v1alpha1.RedisExperimentSchedule, run v1alpha1.ScheduledRun,
) string {
	c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionRegressed)
	if c != nil && c.Status == metav1.ConditionTrue {
		return c.Message
	}
	if run.Message != "" || run.Verdict == v1alpha1.VerdictPass {
		return run.Message
	}
	of := &v1alpha1.RedisExperiment{}
	err := n.Client.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: run.Name},
		of)
	if err != nil {
		return "" // it was deleted
	}
	c = meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ConditionObjectivesMet)
	if c != nil {
		return c.Message
	}
	return ""
}

// notified is what a status says of notifications; nil = there was none, and none was tried.
func notified(of *v1alpha1.ScheduleNotification) (*notify.State, *notify.Attempt) {
	if of == nil {
		return nil, nil
	}
	var last *notify.State
	var tried *notify.Attempt
	if of.Run != "" {
		last = &notify.State{
			Run:       of.Run,
			Verdict:   of.Verdict,
			Regressed: of.Regressed,
		}
	}
	if a := of.Attempt; a != nil {
		tried = &notify.Attempt{
			Run:   a.Run,
			Count: int(a.Count),
			At:    a.Time.Time,
		}
	}
	return last, tried
}

// regressedOf is whether something has regressed; nil = that is unknown.
func regressedOf(e *v1alpha1.RedisExperimentSchedule) *bool {
	c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionRegressed)
	if c == nil || c.Status == metav1.ConditionUnknown {
		return nil
	}
	return new(c.Status == metav1.ConditionTrue)
}
