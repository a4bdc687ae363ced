package chaosmesh

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/peers"
	pods "github.com/redquake/redquake/internal/fault/pod"
)

func (c chaosMesh) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	if c.spec.Action.Type == v1alpha1.FaultPodKill {
		return pods.Kill{Deps: c.Deps}.Effect(ctx, target)
	}
	there, said := c.Held(ctx, target)
	if there != v1alpha1.EffectConfirmed {
		return there, said
	}
	record, _, err := contract.Load[chaosRecord](target)
	if err != nil {
		return contract.Unseen(err)
	}
	effect, evidence, err := c.prove(ctx, target, record)
	if err != nil {
		effect, evidence = v1alpha1.EffectInconclusive, err.Error()
	}
	return effect, evidence + "; " + said
}

// Held reports whether the child breaks the pod, as Chaos Mesh says: what the server shows may need
// a load, or chance.
func (c chaosMesh) Held(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	child, err := c.child(ctx, target)
	if err != nil {
		return contract.Unseen(err)
	}
	if child == nil {
		return contract.NotObserved("there is no %s %s", c.kind.Kind,
			c.childName(target))
	}
	state := object.Read(child)
	said := c.nameOf(child) + ": " + state.String()
	switch {
	case state.Stopped && state.Ever:
		return v1alpha1.EffectNotObserved, said
	case !state.Injected:
		return v1alpha1.EffectInconclusive, said
	}
	lives, err := c.PodExists(ctx, target)
	if err != nil {
		return contract.Unseen(err)
	}
	if !lives {
		return contract.NotObserved(
			"pod %s (%s) was deleted, and the fault with it: Chaos Mesh does not follow to a replacement",
			target.Pod, target.UID)
	}
	return v1alpha1.EffectConfirmed, said
}

// prove compares what the server shows with what was recorded before the fault.
func (c chaosMesh) prove(
	ctx context.Context, target *v1alpha1.FaultTarget, record chaosRecord,
) (v1alpha1.Effect, string, error) {
	_, among := peers.Of(&c.spec.Action)
	switch kind := c.spec.Action.Type; {
	case kind == v1alpha1.FaultNetworkPartition:
		return c.provePartition(ctx, target, record)
	case len(among) > 0:
		return v1alpha1.EffectInconclusive, fmt.Sprintf(
			"traffic between pod %s and its %s cannot be measured by the operator", target.Pod, named(among)), nil
	case kind == v1alpha1.FaultNetworkDelay:
		return c.proveDelay(ctx, target, record)
	case kind == v1alpha1.FaultNetworkLoss:
		return c.proveLoss(ctx, target, record)
	case kind == v1alpha1.FaultDiskDelay:
		return c.proveDisk(ctx, target, record)
	case kind == v1alpha1.FaultCPUStress:
		return c.proveStress(ctx, target, record)
	}
	return c.proveClock(ctx, target, record)
}

func (c chaosMesh) provePartition(
	ctx context.Context, target *v1alpha1.FaultTarget, record chaosRecord,
) (v1alpha1.Effect, string, error) {
	_, among := peers.Of(&c.spec.Action)
	then := record.PeersSpeaking
	if then == 0 {
		return v1alpha1.EffectInconclusive, fmt.Sprintf(
			"none of the %s was active before on a connection that the server lists", named(among)), nil
	}
	now, err := c.speaking(ctx, target, record)
	if err != nil {
		return "", "", err
	}
	text := fmt.Sprintf("%s are active on %d connections of the server, before on %d", named(among), now, then)
	switch {
	case now == 0:
		return v1alpha1.EffectConfirmed, text, nil
	case now < then:
		return v1alpha1.EffectInconclusive, text, nil
	}
	return v1alpha1.EffectNotObserved, text, nil
}

func (c chaosMesh) proveDelay(
	ctx context.Context, target *v1alpha1.FaultTarget, record chaosRecord,
) (v1alpha1.Effect, string, error) {
	before, err := measuredBefore("roundTrip", record.RoundTrip)
	if err != nil {
		return "", "", err
	}
	latency := c.spec.Action.NetworkDelay.Latency.Duration
	began := time.Now()
	trips, err := c.pings(ctx, target, fewPings, 0)
	if len(trips) == 0 {
		waited := time.Since(began)
		if !timedOut(err) || waited < before+latency/2 {
			return "", "", err
		}
		return v1alpha1.EffectConfirmed, fmt.Sprintf("PING had no answer in %s, before it took %s",
			round(waited), before), nil
	}
	took := median(trips)
	text := fmt.Sprintf("PING takes %s, before %s", round(took), before)
	if took < before+latency/2 {
		return v1alpha1.EffectNotObserved, text, nil
	}
	return v1alpha1.EffectConfirmed, text, nil
}

func (c chaosMesh) proveLoss(
	ctx context.Context, target *v1alpha1.FaultTarget, record chaosRecord,
) (v1alpha1.Effect, string, error) {
	before, err := measuredBefore("slowestRoundTrip", record.Slowest)
	if err != nil {
		return "", "", err
	}
	trips, err := c.pings(ctx, target, manyPings, before+retransmission)
	lost := timedOut(err)
	if err != nil && !lost {
		return "", "", err
	}
	switch {
	case lost:
		return v1alpha1.EffectConfirmed, fmt.Sprintf(
			"PING had no answer in %s, before at the latest after %s", askTimeout, before), nil
	case slices.Max(trips) > before+retransmission:
		return v1alpha1.EffectConfirmed, fmt.Sprintf(
			"one of %d PINGs took %s, as after a retransmission; before, at most %s", len(trips),
			round(slices.Max(trips)), before), nil
	}
	return v1alpha1.EffectNotObserved, fmt.Sprintf("none of %d PINGs was retransmitted: %s at most",
		len(trips), round(slices.Max(trips))), nil
}

func (c chaosMesh) proveDisk(
	ctx context.Context, target *v1alpha1.FaultTarget, record chaosRecord,
) (v1alpha1.Effect, string, error) {
	then := record.DelayedFsyncs
	on, now, err := c.fsyncs(ctx, target)
	if err != nil {
		return "", "", err
	}
	if now > then {
		return v1alpha1.EffectConfirmed, fmt.Sprintf("aof_delayed_fsync rose from %d to %d", then,
			now), nil
	}
	before, err := measuredBefore("slowestRoundTrip", record.Slowest)
	if err != nil {
		return "", "", err
	}
	limit := before + c.spec.Action.DiskDelay.Delay.Duration/2
	trips, err := c.pings(ctx, target, manyPings, limit)
	if err != nil {
		return "", "", err
	}
	if slowest := slices.Max(trips); slowest > limit {
		return v1alpha1.EffectConfirmed, fmt.Sprintf(
			"a PING took %s: the main thread waits for the disk; before, at most %s", round(slowest),
			before), nil
	}
	why := "no fsync was late so far"
	if !on {
		why = "the append-only file is off: the server writes only when it saves"
	}
	return v1alpha1.EffectInconclusive, why, nil
}

func (c chaosMesh) proveStress(
	ctx context.Context, target *v1alpha1.FaultTarget, record chaosRecord,
) (v1alpha1.Effect, string, error) {
	before, err := measuredBefore("slowestQuarter", record.SlowestQuarter)
	if err != nil {
		return "", "", err
	}
	trips, err := c.spacedPings(ctx, target)
	if err != nil {
		return "", "", err
	}
	took := slowestQuarter(trips)
	text := fmt.Sprintf("the slowest quarter of %d PINGs took %s at least, before %s", len(trips),
		round(took), round(before))
	if took > 2*before+time.Millisecond {
		return v1alpha1.EffectConfirmed, text, nil
	}
	return v1alpha1.EffectInconclusive, text + ": the server gets the CPU that it needs", nil
}

func (c chaosMesh) proveClock(
	ctx context.Context, target *v1alpha1.FaultTarget, record chaosRecord,
) (v1alpha1.Effect, string, error) {
	before, err := measuredBefore("clock", record.Clock)
	if err != nil {
		return "", "", err
	}
	now, trip, err := c.clock(ctx, target)
	if err != nil {
		return "", "", err
	}
	want, moved := c.spec.Action.ClockSkew.Offset.Duration, now-before
	text := fmt.Sprintf("TIME is off by %s, before by %s", round(now), round(before))
	switch {
	case (moved - want).Abs() <= want.Abs()/10+trip:
		return v1alpha1.EffectConfirmed, text, nil
	case moved.Abs() <= want.Abs()/10+trip:
		return v1alpha1.EffectNotObserved, text, nil
	}
	return v1alpha1.EffectInconclusive, text + fmt.Sprintf(", which is not %s", want), nil
}

// measuredBefore is a duration that was measured before the fault.
func measuredBefore(what string, measured *time.Duration) (time.Duration, error) {
	if measured == nil {
		return 0, fmt.Errorf("%s was not measured before the fault", what)
	}
	return *measured, nil
}
