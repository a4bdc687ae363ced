package follow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/cmd/redquake/live"
	"github.com/redquake/redquake/internal/children"
)

// Hints, for the last line of a page.
const (
	hintRun      = "Ctrl-C aborts, and reverts what was broken"
	hintWatch    = "q or Ctrl-C leaves; the run goes on"
	hintAborting = "aborting: waiting until everything is reverted; Ctrl-C again leaves at once"
)

// follower shows objects as they change, until they are over.
type follower struct {
	client  *kube.Client
	of      []types.UID    // what is followed; other objects are shown with them
	given   []*kube.Object // the same, as it was at the begin
	kinds   []kube.Kind    // of those
	screen  live.Screen
	tracker *live.Tracker
	changes chan kube.Change
	ctrlC   chan struct{} // one value for each
	q       chan struct{}
	records map[string]context.CancelFunc // watches of the records of load tests
	hint    string
}

// ending is how a follower ended.
type ending struct {
	objects  []*kube.Object // what was followed, as it was last seen
	shown    []*kube.Object // the same, with what belongs to it
	aborted  bool           // it set spec.abort, or tried to
	timedOut bool           // because of the timeout
	left     bool           // before everything was over
}

// follow shows objects until they are over. A Ctrl-C, or the timeout (0 = none), aborts them if
// abort is set, else leaves.
func (f *follower) follow(
	ctx context.Context, timeout time.Duration, abort bool,
) (end ending, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := f.begin(ctx); err != nil {
		return end, err
	}
	late := after(timeout)
	troubles := make(chan error, 1) // of the abort
	interrupt := func() bool {      // and whether to leave
		if !abort || end.aborted {
			return true
		}
		end.aborted, f.hint = true, hintAborting
		go f.abort(ctx, f.unfinished(), troubles)
		return false
	}
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case change := <-f.changes:
			err = f.apply(ctx, change)
		case err = <-troubles:
		case <-f.ctrlC:
			end.left = interrupt()
		case <-f.q:
			end.left = !abort
		case <-late:
			if !end.aborted {
				end.timedOut = true
				end.left = interrupt()
			}
		case <-second.C:
		}
		f.show()
		if over := f.over(); over || end.left || err != nil {
			end.objects = f.objects()
			end.shown = f.shown(end.objects)
			end.left = !over
			return end, err
		}
	}
}

// after is time.After, and never without a timeout.
func after(timeout time.Duration) <-chan time.Time {
	if timeout == 0 {
		return nil
	}
	return time.After(timeout)
}

// begin watches the kinds that are shown: without an experiment, those may be out of reach.
func (f *follower) begin(ctx context.Context) error {
	for _, kind := range kube.Kinds {
		if kind == kube.Experiment && !slices.Contains(f.kinds, kind) {
			continue
		}
		err := f.client.Follow(ctx, kind.GVR(), f.client.Namespace, "", f.changes)
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) show() {
	state := f.tracker.State(time.Now(), f.of)
	state.Hint = f.hint
	f.screen.Show(state)
}

// apply takes a change.
func (f *follower) apply(ctx context.Context, change kube.Change) error {
	ofRecord := change.Resource.Resource == "configmaps"
	if change.Lasting {
		if slices.ContainsFunc(f.kinds, func(k kube.Kind) bool {
			return k.Resource == change.Resource.Resource
		}) {
			return change.Trouble
		}
		return nil // without a record there are the figures of the statuses, without faults the load
	}
	err := f.tracker.Apply(change)
	if err != nil || change.Object == nil {
		return err
	}
	for _, uid := range f.of {
		if f.tracker.Gone(uid) && change.Deleted && change.Object.GetUID() == uid {
			return fmt.Errorf("%s %s was deleted meanwhile", change.Object.GetKind(),
				change.Object.GetName())
		}
	}
	if ofRecord {
		return nil
	}
	return f.followRecords(ctx)
}

// followRecords watches the record of each load test that is shown and has begun.
func (f *follower) followRecords(ctx context.Context) error {
	shown := map[string]bool{}
	for _, o := range f.tracker.State(time.Time{}, f.of).Objects {
		if o.Test == nil || o.Test.Status.StartTime == nil {
			continue
		}
		shown[o.Test.Name] = true
		if f.records[o.Test.Name] == nil {
			var watching context.Context
			watching, f.records[o.Test.Name] = context.WithCancel(ctx)
			err := f.client.Follow(watching, corev1.SchemeGroupVersion.WithResource("configmaps"),
				f.client.Namespace, children.ResultsName(o.Test.Name), f.changes)
			if err != nil {
				return err
			}
		}
	}
	for name, stop := range f.records {
		if !shown[name] {
			stop()
			delete(f.records, name)
		}
	}
	return nil
}

// objects are what is followed, as it was last seen.
func (f *follower) objects() (all []*kube.Object) {
	for i, uid := range f.of {
		if o := f.tracker.Object(uid); o != nil {
			all = append(all, o)
		} else {
			all = append(all, f.given[i])
		}
	}
	return all
}

// shown are objects, and those that are shown with them: the faults on a load.
func (f *follower) shown(objects []*kube.Object) []*kube.Object {
	all := slices.Clone(objects)
	for _, o := range f.tracker.State(time.Time{}, f.of).Objects {
		if !slices.Contains(f.of, o.Meta().UID) {
			all = append(all, o)
		}
	}
	return all
}

func (f *follower) unfinished() (some []*kube.Object) {
	for _, o := range f.objects() {
		if !o.Finished() {
			some = append(some, o)
		}
	}
	return some
}

// over reports whether everything that is followed has ended, and nothing of it acts any more.
func (f *follower) over() bool {
	for _, uid := range f.of {
		o := f.tracker.Object(uid)
		if o == nil || !o.Finished() || o.Acts() {
			return false
		}
	}
	return true
}

// abort sets spec.abort of objects, and tries again while the API server does not answer. What it
// refuses is sent to troubles.
func (f *follower) abort(ctx context.Context, all []*kube.Object, troubles chan<- error) {
	for len(all) > 0 && ctx.Err() == nil {
		var left []*kube.Object
		var refused error
		for _, o := range all {
			err := f.client.Abort(ctx, o)
			switch {
			case err == nil:
			case kube.Refused(errors.Unwrap(err)) || kube.Refused(err):
				refused = errors.Join(refused, err)
			default:
				left = append(left, o)
			}
		}
		if refused != nil {
			select {
			case troubles <- refused:
			case <-ctx.Done():
			}
			return
		}
		if all = left; len(all) > 0 {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	}
}

// newFollower returns a follower that shows a page if the stream is a terminal. The caller calls
// stop at the end.
func newFollower(
	client *kube.Client, of []*kube.Object, io cli.Streams, onOut, plain bool, hint string,
) (f *follower, stop func() error) {
	f = &follower{
		client:  client,
		of:      kube.UIDs(of),
		given:   of,
		tracker: live.NewTracker(),
		changes: make(chan kube.Change),
		hint:    hint,
		ctrlC:   make(chan struct{}, 8),
		q:       make(chan struct{}, 8),
		records: map[string]context.CancelFunc{},
	}
	for _, o := range of {
		f.kinds = append(f.kinds, o.Kind)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, cli.Interrupts()...)
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-signals:
				put(f.ctrlC)
			case <-ended:
				return
			}
		}
	}()
	out := io.Err
	if onOut {
		out = io.Out
	}
	f.screen = live.NewScreen(io.In, out, plain, func() { put(f.ctrlC) }, func() { put(f.q) })
	return f, func() error {
		signal.Stop(signals)
		close(ended)
		return f.screen.Close()
	}
}

// put sends to a channel that has room, or whose reader has enough.
func put(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// unreverted says what is still to be reverted, and how to see it; "" if nothing is.
func unreverted(objects []*kube.Object, namespace, program string) string {
	var b strings.Builder
	for _, o := range objects {
		if o.Acts() {
			reason, message := o.State()
			fmt.Fprintf(&b, "%s still acts on Redis (%s: %s)\n", o.Ref(), reason, message)
		} else if !o.Finished() {
			reason, _ := o.State()
			fmt.Fprintf(&b, "%s goes on (%s)\n", o.Ref(), reason)
		}
		for _, command := range o.Unreverted() {
			fmt.Fprintf(&b, "%s was not reverted; by hand, on %s\n", o.Ref(), command)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	var refs []string
	for _, o := range objects {
		if !o.Finished() || o.Acts() {
			refs = append(refs, o.Ref())
		}
	}
	if len(refs) > 0 {
		fmt.Fprintf(&b, "The operator reverts it, without this program. To see that: %s watch -n %s %s\n",
			program, namespace, strings.Join(refs, " "))
	}
	return b.String()
}

// interruption is closed by the first Ctrl-C; a second one ends the process. release restores what
// a Ctrl-C did before.
func interruption() (stop <-chan struct{}, release func()) {
	signals := make(chan os.Signal, 1)
	closed := make(chan struct{})
	ended := make(chan struct{})
	signal.Notify(signals, cli.Interrupts()...)
	go func() {
		select {
		case <-signals:
			signal.Stop(signals)
			close(closed)
		case <-ended:
		}
	}()
	return closed, func() {
		signal.Stop(signals)
		close(ended)
	}
}
