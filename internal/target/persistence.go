package target

import (
	"context"
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/target/confine"
)

// End is how the process of a server ends.
type End struct {
	Abrupt  bool // it does not save its data
	NewPod  bool // its pod is replaced
	NewNode bool // the replacement is on another node
}

// Forgets returns why a server would come back without its data if its process ended now; "" where
// it would load what it has written to its disk.
func (r Redis) Forgets(ctx context.Context, s *Server, end End) string {
	if !s.State.Persistence.Appends {
		switch save, err := r.setting(ctx, s.Address, "save"); {
		case redis.IsReply(err):
			return fmt.Sprintf(
				`it has no append-only file, and does not tell whether it saves snapshots (CONFIG GET save: %v)`,
				err)
		case err != nil:
			return fmt.Sprintf(
				`it has no append-only file, and it is not known whether it saves snapshots (%v)`, err)
		case save == "":
			return `it writes nothing to its disk (appendonly no, save "")`
		case end.Abrupt && !s.State.Persistence.Saved:
			return "it has not saved a snapshot yet, and has no append-only file"
		}
	}
	folder, _ := r.setting(ctx, s.Address, "dir") // where it is not told, any volume may have it
	container := r.Container(s.Pod)
	if keeps(s.Pod, &container, folder, end) {
		return ""
	}
	what := "container"
	if end.NewPod {
		what = "pod"
	}
	if folder == "" {
		folder = "its data"
	}
	return fmt.Sprintf("%s is on no volume that outlives its %s", folder, what)
}

// setting is one setting of a server.
func (r Redis) setting(ctx context.Context, address, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, confine.QueryTimeout)
	defer cancel()
	all, err := r.Settings(ctx, address, name)
	return all[name], err
}

// keeps reports whether a folder of a container is on a volume that is still there after the end of
// its process. A folder that is not known may be on any.
func keeps(pod *corev1.Pod, container *corev1.Container, folder string, end End) bool {
	var at string
	var on *corev1.Volume
	for _, mount := range container.VolumeMounts {
		if within(folder, mount.MountPath) && len(mount.MountPath) >= len(at) {
			at, on = mount.MountPath, volumeNamed(pod, mount.Name)
		}
		if folder == "" && on != nil && outlives(on, end) {
			break
		}
	}
	return on != nil && outlives(on, end)
}

// within reports whether a folder is in another one, or is it; an unknown one is in each.
func within(folder, in string) bool {
	folder, in = path.Clean("/"+folder), path.Clean("/"+in)
	return folder == "/" || folder == in || in == "/" || strings.HasPrefix(folder, in+"/")
}

func volumeNamed(pod *corev1.Pod, name string) *corev1.Volume {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Name == name {
			return &pod.Spec.Volumes[i]
		}
	}
	return nil
}

// outlives reports whether a volume is there after the end of a process.
func outlives(v *corev1.Volume, end End) bool {
	switch {
	case !end.NewPod:
		return true
	case v.HostPath != nil:
		return !end.NewNode
	case v.EmptyDir != nil, v.Ephemeral != nil, v.CSI != nil, v.ConfigMap != nil, v.Secret != nil,
		v.Projected != nil, v.DownwardAPI != nil, v.Image != nil:
		return false
	}
	return v.VolumeSource != (corev1.VolumeSource{}) // one without a source is an emptyDir
}
