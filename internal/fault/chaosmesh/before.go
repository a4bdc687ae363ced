package chaosmesh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/peers"
	"github.com/redquake/redquake/internal/problem"
)

// chaosRecord is the record of a fault by Chaos Mesh: the child's parameters, and the measurements
// before the fault, to compare with.
type chaosRecord struct {
	// DiskDelay: where the volume is mounted
	VolumePath string `json:"volumePath,omitempty"`
	// network faults: address by pod; not of clients, which have labels
	Peers map[string]string `json:"peers,omitempty"`

	RoundTrip *time.Duration `json:"roundTrip,omitempty"`        // the median of some PINGs
	Slowest   *time.Duration `json:"slowestRoundTrip,omitempty"` // the slowest of more of them
	// CPUStress: from which on the slowest quarter of spaced PINGs took
	SlowestQuarter *time.Duration `json:"slowestQuarter,omitempty"`
	// the server's clock against the operator's
	Clock         *time.Duration `json:"clock,omitempty"`
	DelayedFsyncs int64          `json:"delayedFsyncs,omitempty"` // aof_delayed_fsync
	// on how many connections peers are active
	PeersSpeaking int `json:"peersSpeaking,omitempty"`
}

// recordVolume finds the mount that is slowed down: the one that the spec names, else the one that
// holds the server's data.
func (c chaosMesh) recordVolume(
	ctx context.Context, pod *corev1.Pod, target *v1alpha1.FaultTarget, record *chaosRecord,
) error {
	mounts := mountsOf(pod, target.Container)
	if path := c.spec.Action.DiskDelay.VolumePath; path != "" {
		if !slices.Contains(mounts, path) {
			return problem.Invalid(
				"spec.action.diskDelay.volumePath: container %s of pod %s mounts nothing at %s, but at: %s",
				target.Container, target.Pod, path, strings.Join(mounts, ", "))
		}
		record.VolumePath = path
		return nil
	}
	settings, err := c.Settings(ctx, target.Address, "dir")
	folder := settings["dir"]
	if err == nil && folder == "" {
		err = errors.New("CONFIG GET shows no setting dir")
	}
	if err != nil {
		return fmt.Errorf("spec.action.diskDelay.volumePath: read the data directory of the server: %w",
			err)
	}
	record.VolumePath = mountOf(folder, mounts)
	if record.VolumePath == "" {
		return problem.Invalid(
			"spec.action.diskDelay: the server's dir %s is on no volume of container %s: there is none to slow down",
			folder, target.Container)
	}
	return nil
}

func mountsOf(pod *corev1.Pod, container string) []string {
	var mounts []string
	for _, c := range pod.Spec.Containers {
		if c.Name != container {
			continue
		}
		for _, m := range c.VolumeMounts {
			mounts = append(mounts, m.MountPath)
		}
	}
	return mounts
}

// mountOf is the deepest mount that holds a folder; "" where none does.
func mountOf(folder string, mounts []string) string {
	deepest := ""
	for _, m := range mounts {
		inside := folder == m || strings.HasPrefix(folder, strings.TrimSuffix(m, "/")+"/")
		if inside && len(m) > len(deepest) {
			deepest = m
		}
	}
	return deepest
}

// recordBefore takes the measurements that Effect compares with.
func (c chaosMesh) recordBefore(
	ctx context.Context, target *v1alpha1.FaultTarget, record *chaosRecord,
) error {
	_, among := peers.Of(&c.spec.Action)
	switch kind := c.spec.Action.Type; {
	case kind == v1alpha1.FaultNetworkPartition:
		n, err := c.speaking(ctx, target, *record)
		if err != nil {
			return err
		}
		record.PeersSpeaking = n
	case len(among) > 0:
	case kind == v1alpha1.FaultCPUStress:
		trips, err := c.spacedPings(ctx, target)
		if err != nil {
			return err
		}
		record.SlowestQuarter = new(slowestQuarter(trips))
	case kind == v1alpha1.FaultNetworkDelay:
		trips, err := c.pings(ctx, target, fewPings, 0)
		if err != nil {
			return err
		}
		record.RoundTrip = new(median(trips))
	case kind == v1alpha1.FaultNetworkLoss, kind == v1alpha1.FaultDiskDelay:
		trips, err := c.pings(ctx, target, manyPings, 0)
		if err != nil {
			return err
		}
		record.Slowest = new(slices.Max(trips))
		if kind == v1alpha1.FaultDiskDelay {
			_, delayed, err := c.fsyncs(ctx, target)
			if err != nil {
				return err
			}
			record.DelayedFsyncs = delayed
		}
	case kind == v1alpha1.FaultClockSkew:
		offset, _, err := c.clock(ctx, target)
		if err != nil {
			return err
		}
		record.Clock = &offset
	}
	return nil
}
