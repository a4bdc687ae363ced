package faultrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/problem"
)

// Limits of the evaluation of stop conditions.
const (
	// liveEvery is how often the record is read while a fault with a limit on its figures is injected.
	liveEvery = 500 * time.Millisecond
	// recordLate is how far the end of a record may be behind before it counts as unreadable.
	recordLate = 5 * time.Second
	// resumeWithin is how long a process that starts may take until it has a record to read.
	resumeWithin = 10 * time.Second
	// SlowestQuery is how long the answer to a query may take at most.
	SlowestQuery = 10 * time.Second
)

// Stops evaluates the stop conditions of one fault. It holds all that this needs, as a reverter
// does: no reconcile takes part.
type Stops struct {
	Spec *v1alpha1.StopConditions
	// Live returns what the load's record shows of the fault, and how far its end is behind.
	// ErrNoRecord: this process has none.
	Live  func(p Progress) (live impact.Live, behind time.Duration, err error)
	Query func(ctx context.Context, q *v1alpha1.StopQuery) *v1alpha1.Breach
}

// watchStops evaluates the stop conditions from the injection until the revert begins. It may be
// called again.
func (v *Reverter) watchStops() {
	v.mu.Lock()
	defer v.mu.Unlock()
	stops := v.by.Load().Stops
	if stops == nil || v.watching || v.work.known.injectedAt == nil ||
		v.work.known.revertingSince != nil || v.over.Err() != nil {
		return
	}
	v.watching = true
	ctx, cancel := context.WithCancel(v.over)
	context.AfterFunc(v.begun, cancel)
	if stops.limitsFigures() {
		v.session.registry.start(func() { v.watchFigures(ctx) })
	}
	for i := range stops.Spec.Queries {
		q := &stops.Spec.Queries[i]
		v.session.registry.start(func() {
			for again := true; again; again = pauseFor(ctx, q.Every.Duration) {
				if v.leftToOthers(ctx) {
					continue
				}
				if stops := v.by.Load().Stops; stops != nil {
					v.stopFor(ctx, stops.Query(ctx, q))
				}
			}
		})
	}
}

// watchFigures evaluates the limits on the fault's own figures.
func (v *Reverter) watchFigures(ctx context.Context) {
	since := v.now()
	for again := true; again; again = pauseFor(ctx, liveEvery) {
		if v.leftToOthers(ctx) {
			since = v.now()
			continue
		}
		p, _ := v.Progress()
		stops := v.by.Load().Stops
		if stops == nil {
			continue
		}
		live, behind, err := stops.Live(p)
		switch {
		case err != nil && v.now().Sub(since) > resumeWithin:
			v.stopFor(ctx, stops.unreadable(err.Error()))
		case err != nil:
		case behind > recordLate && v.now().Sub(since) > resumeWithin:
			v.stopFor(ctx, stops.unreadable(fmt.Sprintf("it ends %s ago", format.Duration(behind))))
		default:
			v.stopFor(ctx, stops.figures(live))
		}
	}
}

// leftToOthers reports whether this process does not lead, although the API server answers: then
// another one leads, and evaluates the stop conditions.
func (v *Reverter) leftToOthers(ctx context.Context) bool {
	if v.session.registry.leads() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, ReadTimeout)
	defer cancel()
	return v.by.Load().Live.Get(ctx, v.session.key, &v1alpha1.RedisFault{}) == nil
}

// stopFor begins the revert because of a breach, unless it has begun already.
func (v *Reverter) stopFor(ctx context.Context, b *v1alpha1.Breach) {
	if b == nil || ctx.Err() != nil {
		return
	}
	v.mu.Lock()
	first := v.work.known.revertingSince == nil
	if first {
		b.At = metav1.NewMicroTime(v.now())
		v.work.known.breach = b
		v.work.known.begin(b.At.Time)
	}
	v.mu.Unlock()
	if first {
		v.log.Info("Reverting: a stop condition is met", "condition", b.Condition, "message", b.Message)
		v.begin()
	}
}

// limitsFigures reports whether any condition is a limit on the load's own figures.
func (s *Stops) limitsFigures() bool {
	return s.Spec.Outage != nil || s.Spec.ErrorRate != nil || s.Spec.LostWrites != nil
}

// figures compares the figures with their limits.
func (s *Stops) figures(live impact.Live) *v1alpha1.Breach {
	limit := s.Spec.Outage
	if limit != nil && live.Outage >= limit.Duration {
		return BreachOf("spec.stopIf.outage", true,
			fmt.Sprintf("no success for %s, limit %s", format.Duration(live.Outage),
				format.Duration(limit.Duration)))
	}
	if limit := s.Spec.ErrorRate; limit != nil &&
		live.ErrorRate >= v1alpha1.Percentage(*limit).Share() {
		return BreachOf("spec.stopIf.errorRate", true,
			fmt.Sprintf("%s of the requests of one second did not succeed, limit %s",
				format.Share(live.ErrorRate), *limit))
	}
	return s.lostWrites(&live.Ledger)
}

// unreadable is the breach of a fault whose figures are not known any more.
func (s *Stops) unreadable(why string) *v1alpha1.Breach {
	field := "spec.stopIf.outage"
	switch {
	case s.Spec.Outage != nil:
	case s.Spec.ErrorRate != nil:
		field = "spec.stopIf.errorRate"
	default:
		field = LostWritesField
	}
	return BreachOf(field, false, "the load's record cannot be read: "+why)
}

// BreachOf is a breach seen now; message is what holds of its field.
func BreachOf(field string, answered bool, message string) *v1alpha1.Breach {
	return &v1alpha1.Breach{
		Condition: field,
		Answered:  answered,
		Message:   digest.Truncate(field+": "+message, 1024),
	}
}

// check evaluates all conditions once, before the injection. lately returns the state of the load;
// nil = there is no record.
func (s *Stops) check(ctx context.Context, lately func() *impact.Live) *v1alpha1.Breach {
	if now := lately(); now != nil {
		if b := s.figures(*now); b != nil {
			return b
		}
	}
	found := make([]*v1alpha1.Breach, len(s.Spec.Queries)+1)
	var all sync.WaitGroup
	if s.Spec.LostWrites != nil {
		all.Go(func() { found[len(s.Spec.Queries)] = s.ledgerUnread(ctx, lately) })
	}
	for i := range s.Spec.Queries {
		all.Go(func() { found[i] = s.Query(ctx, &s.Spec.Queries[i]) })
	}
	all.Wait()
	for _, b := range found {
		if b != nil {
			return b
		}
	}
	return nil
}

// ErrNoRecord is why a process has no figures of a fault.
var ErrNoRecord = errors.New("this operator has no record of the load")

// pauseFor waits; it returns false if ctx has ended.
func pauseFor(ctx context.Context, d time.Duration) bool {
	timer, stop := context.WithTimeout(ctx, d)
	defer stop()
	<-timer.Done()
	return ctx.Err() == nil
}

// An object that does not fit into one request of the API server to etcd, 1.5 MiB by default,
// cannot be stored: neither what was injected nor what was reverted. A fault whose records are too
// large is therefore refused before it breaks anything, and the texts that may be added later are
// shorter the more targets there are.
const (
	// maxRecords is the size of all records of a fault. The rest of 1.5 MiB is for the texts of its
	// targets, conditions, timeline and spec.
	maxRecords = 950 << 10
	// addedLater is what a record grows by when it is injected and reverted: instants, and the entries
	// of its fields in metadata.managedFields.
	addedLater = 550
	// fullTexts is the number of targets up to which each can have texts of full length.
	fullTexts = 80

	// MaxError is the length of an error of a target, in bytes.
	MaxError = 1024
	// MaxProgress is that of what is in progress.
	MaxProgress = 512
	// MaxCommand is that of a command for a person.
	MaxCommand = 2048
)

// CheckSize returns a Problem if the records of the targets could not be stored together with what
// is added later.
func CheckSize(targets []v1alpha1.FaultTarget) error {
	size := 0
	for i := range targets {
		text, err := json.Marshal(&targets[i])
		if err != nil {
			return fmt.Errorf("encode the record of pod %s: %w", targets[i].Pod, err)
		}
		size += len(text) + len(targets[i].Pod) + addedLater
	}
	if size > maxRecords {
		return problem.Invalid(
			"spec.select: the revert records of %d targets need %d KiB of the status, which holds %d KiB: "+
				"select at most %d targets, and use several faults",
			len(targets), size>>10, maxRecords>>10, len(targets)*maxRecords/size)
	}
	return nil
}

// Shorten limits a text of one of several targets.
func Shorten(text string, most, targets int) string {
	if targets > fullTexts {
		most = most * fullTexts / targets
	}
	return digest.Truncate(text, most)
}

// LostWritesField is the path of the limit on lost writes.
const LostWritesField = "spec.stopIf.lostWrites"

// ledgerReadWithin is how long a check before the injection waits for the ledger to be read: a load
// that has just begun has not read it yet.
const ledgerReadWithin = 5 * time.Second

// lostWrites compares the lost writes that are known with their limit. That the ledger was not read
// lately is no breach: Redis may be down, for which there is another condition. That it cannot be
// read any more is one, as then the condition would never hold.
func (s *Stops) lostWrites(ledger *summary.LiveLedger) *v1alpha1.Breach {
	limit := s.Spec.LostWrites
	switch {
	case limit == nil:
	case ledger.Total() >= uint64(*limit):
		return BreachOf(LostWritesField, true,
			fmt.Sprintf("%d acknowledged ledger writes are lost%s, limit %d",
				ledger.Total(), ofShards(ledger.Lost), *limit))
	case ledger.Unknowable:
		return BreachOf(LostWritesField, false,
			"lost writes are not known while the load runs: "+ledger.Unread)
	}
	return nil
}

// ofShards says of which shards lost writes are, if there are several.
func ofShards(lost []uint64) string {
	var each []string
	for shard, n := range lost {
		if n > 0 {
			each = append(each, fmt.Sprintf("%d of shard %d", n, shard))
		}
	}
	if len(lost) < 2 {
		return ""
	}
	if len(each) > 8 {
		each = append(each[:8], "...")
	}
	return " (" + strings.Join(each, ", ") + ")"
}

// ledgerUnread is the breach of a fault whose load does not read its ledger: the condition would
// never hold. It waits for the ledger of a load that has just begun.
func (s *Stops) ledgerUnread(ctx context.Context, lately func() *impact.Live) *v1alpha1.Breach {
	ctx, cancel := context.WithTimeout(ctx, ledgerReadWithin)
	defer cancel()
	why := ""
	for again := true; again; again = pauseFor(ctx, liveEvery) {
		now := lately()
		if now == nil {
			why = ErrNoRecord.Error()
			continue
		}
		if why = now.Ledger.Unread; why == "" {
			return nil
		}
	}
	return BreachOf(LostWritesField, false, "the load pods cannot look for lost writes: "+why)
}

// LimitsLosses reports whether a fault is to be reverted at lost writes.
func LimitsLosses(f *v1alpha1.RedisFault) bool {
	return f.Spec.StopIf != nil && f.Spec.StopIf.LostWrites != nil
}
