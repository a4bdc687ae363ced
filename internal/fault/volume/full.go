package volume

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/diskfill"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis"
)

const (
	// outlasts is by how much a volume stays full that nobody frees: the program in the holder pod does
	// then.
	outlasts = 10 * time.Second
	// asksWithin is how long a call of that program may take, which takes some milliseconds.
	asksWithin = 10 * time.Second
	// fillerStarts is how long a holder pod may take to run, its image included.
	fillerStarts = 2 * time.Minute
)

// diskFull fills the volume on which a server keeps its data, by a holder pod beside it: package
// diskfill. The kernel frees it when that pod ends, and its program ends by itself.
type diskFull struct {
	contract.Deps
	lasts time.Duration
	leave int64 // bytes
}

var (
	_ contract.Preparer = diskFull{}
	_ contract.Holder   = diskFull{}
)

func newDiskFull(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	given := ptr.Deref(spec.Action.DiskFull, v1alpha1.DiskFull{})
	return diskFull{Deps: deps, lasts: spec.Stays(), leave: given.Leave.Value()}
}

// filledRecord is the record of a server whose volume is filled.
type filledRecord struct {
	Claim    string `json:"claim"`
	Capacity int64  `json:"capacity"` // bytes
}

func (d diskFull) Traits() contract.Traits {
	return contract.Traits{
		Lasts:    d.lasts,
		Takes:    fillerStarts,
		Silences: true,
		Separate: true,
	}
}

func (d diskFull) holders() holders {
	return holders{Deps: d.Deps, short: "full", lasts: d.lasts + outlasts}
}

func (d diskFull) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	pod, err := d.Pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	if err := d.mustSave(ctx, target); err != nil {
		return err
	}
	name, err := d.claimOfData(ctx, pod, target)
	if err != nil {
		return err
	}
	capacity, err := d.capacity(ctx, name)
	if err != nil {
		return err
	}
	if d.leave >= capacity {
		return problem.Invalid("spec.action.diskFull.leave is %s, and claim %s of pod %s has %s: nothing would be filled",
			inBytes(d.leave), name, pod.Name, inBytes(capacity))
	}
	if _, err := d.holders().pod(ctx, target); apierrors.IsNotFound(err) {
		if _, err := d.holders().create(ctx, target, name, d.filler, client.DryRunAll); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	return contract.Save(target, filledRecord{Claim: name, Capacity: capacity})
}

// mustSave refuses a server that writes nothing to its disk, as it would not notice.
func (d diskFull) mustSave(ctx context.Context, target *v1alpha1.FaultTarget) error {
	for _, name := range []string{"appendonly", "save"} {
		found, err := d.Settings(ctx, target.Address, name)
		if redis.IsReply(err) { // it may not be asked
			return nil
		} else if err != nil {
			return err
		}
		if value, known := found[name]; !known || value != "" && value != "no" {
			return nil
		}
	}
	return problem.Unsupported(
		"the server at %s writes nothing to its disk (appendonly no, save \"\"): it would not notice that it "+
			"is full", target.Address)
}

// claimOfData is the claim that has the folder of the server's data; the first one of its container
// where the server does not say which that is.
func (d diskFull) claimOfData(
	ctx context.Context, pod *corev1.Pod, target *v1alpha1.FaultTarget,
) (string, error) {
	found, err := d.Settings(ctx, target.Address, "dir")
	if err != nil && !redis.IsReply(err) {
		return "", err
	}
	folder := found["dir"]
	if folder == "" {
		if claims := claimsOf(pod, target.Container); len(claims) > 0 {
			return claims[0], nil
		}
		return "", problem.Unsupported("pod %s has no volume of a persistentVolumeClaim: there is nothing to fill", pod.Name)
	}
	mounts := d.Container(pod).VolumeMounts
	slices.SortFunc(mounts, func(a, b corev1.VolumeMount) int { return len(b.MountPath) - len(a.MountPath) })
	for _, mount := range mounts { // the innermost first
		if !within(folder, mount.MountPath) {
			continue
		}
		for _, v := range pod.Spec.Volumes {
			if v.Name == mount.Name && v.PersistentVolumeClaim != nil {
				return v.PersistentVolumeClaim.ClaimName, nil
			}
		}
		break
	}
	return "", problem.Unsupported(
		"the server of pod %s keeps its data in %s, which is no volume of a persistentVolumeClaim: filling it "+
			"would fill the disk of node %s", pod.Name, folder, pod.Spec.NodeName)
}

// within reports whether a path is a folder or in it.
func within(name, folder string) bool {
	name, folder = path.Clean(name), path.Clean(folder)
	return name == folder || folder == "/" || strings.HasPrefix(name, folder+"/")
}

// capacity is how many bytes a claim has, of which only one node has use.
func (d diskFull) capacity(ctx context.Context, name string) (int64, error) {
	claim := &corev1.PersistentVolumeClaim{}
	if err := d.Live.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: name}, claim); err != nil {
		return 0, fmt.Errorf("read claim %s: %w", name, err)
	}
	if claim.Status.Phase != corev1.ClaimBound {
		return 0, problem.NotYet("claim %s is %s", name, claim.Status.Phase)
	}
	for _, mode := range claim.Status.AccessModes {
		switch mode {
		case corev1.ReadWriteMany, corev1.ReadOnlyMany:
			return 0, problem.Unsupported("claim %s is %s: its volume would be full for others as well", name, mode)
		case corev1.ReadWriteOncePod:
			return 0, problem.Unsupported("claim %s is %s: no holder pod may use it beside Redis", name, mode)
		}
	}
	capacity := claim.Status.Capacity[corev1.ResourceStorage]
	if capacity.Value() <= 0 {
		return 0, problem.NotYet("the status of claim %s has no capacity", name)
	}
	return capacity.Value(), nil
}

// program is where our image has the program that fills a volume.
var program = []string{"/redquake", "diskfill"}

// filler is a container that fills a volume when it is told to. It has the user of the server, whose
// folder it writes to, and whose reserve it may use.
func (d diskFull) filler(
	pod *corev1.Pod, redis *corev1.Container,
) (corev1.Container, *corev1.PodSecurityContext) {
	security, of := holderSecurity(pod, redis), unprivileged()
	root, nonRoot := asRoot(pod, redis)
	if root && !nonRoot {
		security.RunAsNonRoot, security.RunAsUser, security.RunAsGroup = nil, new(int64(0)), new(int64(0))
		// the server may have given its folder to another user
		of.Capabilities.Add = []corev1.Capability{"DAC_OVERRIDE"}
	}
	if given := pod.Spec.SecurityContext; given != nil {
		security.SupplementalGroups = slices.Clone(given.SupplementalGroups)
		if given.FSGroup != nil { // a member, without a change of owners
			security.SupplementalGroups = append(security.SupplementalGroups, *given.FSGroup)
		}
	}
	return corev1.Container{
		Image:   d.Image,
		Command: append(slices.Clone(program), diskfill.VerbServe, holderPath),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("10m"),
				corev1.ResourceMemory: resource.MustParse("32Mi"),
			},
			Limits: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("200m"),
				corev1.ResourceMemory: resource.MustParse("64Mi"),
			},
		},
		VolumeMounts:    []corev1.VolumeMount{{Name: holderVolume, MountPath: holderPath}},
		SecurityContext: of,
	}, security
}

// asRoot reports whether a container runs as root or as a user that only its image knows, and whether
// it must not be root.
func asRoot(pod *corev1.Pod, redis *corev1.Container) (root, nonRoot bool) {
	var user *int64
	if of := pod.Spec.SecurityContext; of != nil {
		user, nonRoot = of.RunAsUser, ptr.Deref(of.RunAsNonRoot, false)
	}
	if of := redis.SecurityContext; of != nil {
		if of.RunAsUser != nil {
			user = of.RunAsUser
		}
		nonRoot = ptr.Deref(of.RunAsNonRoot, nonRoot)
	}
	return ptr.Deref(user, 0) == 0, nonRoot
}

// order is what the program is told.
func (d diskFull) order(r filledRecord) diskfill.Order {
	return diskfill.Order{Capacity: r.Capacity, Leave: d.leave, For: d.lasts + outlasts}
}

// run has the program in a holder pod carry out a verb.
func (d diskFull) run(
	ctx context.Context, holder string, arguments ...string,
) (diskfill.State, error) {
	ctx, cancel := context.WithTimeout(ctx, asksWithin)
	defer cancel()
	output, err := d.Programs.Run(ctx, types.NamespacedName{Namespace: d.Namespace, Name: holder},
		holderContainer, slices.Concat(program, arguments)...)
	if err != nil {
		return diskfill.State{}, err
	}
	return diskfill.ParseState(output)
}

// Begun is true once the volume is full, or was.
func (d diskFull) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	holder, err := d.holders().pod(ctx, target)
	if apierrors.IsNotFound(err) || errors.Is(err, errForeign) {
		return false, nil
	}
	if err != nil || holder.Status.Phase != corev1.PodRunning {
		return false, err
	}
	state, err := d.run(ctx, holder.Name, diskfill.VerbShow)
	return state.Full || state.Released, err
}

// Prepare has a holder pod run, which finds out whether the volume can be filled.
func (d diskFull) Prepare(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	r, gone, err := d.recall(ctx, target)
	if err != nil || gone {
		return contract.Progress{}, err
	}
	holder, err := d.holders().pod(ctx, target)
	if apierrors.IsNotFound(err) {
		return d.holders().create(ctx, target, r.Claim, d.filler)
	}
	if err != nil {
		return contract.Progress{}, err
	}
	switch holder.Status.Phase {
	case corev1.PodFailed, corev1.PodSucceeded:
		return contract.Progress{}, fmt.Errorf("holder pod %s ended by itself%s", holder.Name, whyEnded(holder))
	case corev1.PodRunning:
		state, err := d.run(ctx, holder.Name, d.order(r).Arguments(diskfill.VerbCheck)...)
		return contract.Progress{}, errors.Join(err, d.refused(state, r))
	}
	return contract.Preparing("holder pod %s does not run yet%s", holder.Name, whyWaiting(holder)), nil
}

// refused is why a volume was not filled.
func (d diskFull) refused(state diskfill.State, r filledRecord) error {
	if state.Refused == "" {
		return nil
	}
	return problem.Unsupported("the volume of claim %s is not filled: %s", r.Claim, state.Refused)
}

// recall is the record of a target, and whether its pod is gone, or another one.
func (d diskFull) recall(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (r filledRecord, gone bool, err error) {
	r, _, err = contract.Load[filledRecord](target)
	if err != nil {
		return r, false, err
	}
	pod, err := d.Pod(ctx, target.Pod)
	if apierrors.IsNotFound(err) {
		return r, true, nil
	}
	return r, err == nil && string(pod.UID) != target.UID, err
}

// Inject fills the volume. Where it has been released meanwhile, the fault is over.
func (d diskFull) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	progress, err := d.Prepare(ctx, target)
	if err != nil || !progress.Complete() {
		return progress, err
	}
	r, gone, err := d.recall(ctx, target)
	if err != nil || gone {
		return contract.Progress{}, err
	}
	state, err := d.run(ctx, d.holders().name(target), d.order(r).Arguments(diskfill.VerbFill)...)
	if err == nil && state.Released {
		err = fmt.Errorf("the volume of claim %s was freed meanwhile", r.Claim)
	}
	return contract.Progress{}, errors.Join(err, d.refused(state, r))
}

// Revert frees the volume by the program, which is exact, and deletes the holder pod. Where the
// program cannot be reached, the volume is free once the pod is gone.
func (d diskFull) Revert(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	if _, _, err := contract.Load[filledRecord](target); err != nil {
		return contract.Progress{}, err
	}
	holder, err := d.holders().pod(ctx, target)
	if apierrors.IsNotFound(err) || errors.Is(err, errForeign) {
		return contract.Progress{}, nil
	}
	if err != nil {
		return contract.Progress{}, err
	}
	free := holder.Status.Phase == corev1.PodFailed || holder.Status.Phase == corev1.PodSucceeded
	if !free && holder.Status.Phase == corev1.PodRunning {
		state, err := d.run(ctx, holder.Name, diskfill.VerbRelease)
		free = err == nil && state.Released
	}
	if holder.DeletionTimestamp == nil {
		err = d.Cluster.Delete(ctx, holder, client.Preconditions{UID: &holder.UID})
		if client.IgnoreNotFound(err) != nil {
			return contract.Progress{}, fmt.Errorf("delete the holder pod %s: %w", holder.Name, err)
		}
	}
	if !free && !d.over(target) {
		return contract.Underway("holder pod %s, which fills the volume, ends", holder.Name), nil
	}
	return contract.Progress{}, nil
}

// over reports whether the program has freed the volume by itself, wherever it is.
func (d diskFull) over(target *v1alpha1.FaultTarget) bool {
	return target.InjectedAt != nil && time.Since(target.InjectedAt.Time) > d.lasts+outlasts+asksWithin
}

func (d diskFull) ManualRevertCommand(target *v1alpha1.FaultTarget) string {
	return fmt.Sprintf("kubectl -n %s delete pod %s --ignore-not-found", d.Namespace, d.holders().name(target))
}

// Effect is confirmed once the server has failed to write.
func (d diskFull) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	effect, evidence := d.Held(ctx, target)
	if effect != v1alpha1.EffectConfirmed {
		return effect, evidence
	}
	info, err := d.Info(ctx, target.Address, "persistence")
	if err != nil {
		return contract.Inconclusive("%s; the server does not answer: %v", evidence, err)
	}
	for _, field := range []string{"aof_last_write_status", "rdb_last_bgsave_status", "aof_last_bgrewrite_status"} {
		if info[field] == "err" {
			return contract.Confirmed("%s; the server could not write: %s:err", evidence, field)
		}
	}
	return contract.Inconclusive("%s; the server has not failed to write so far", evidence)
}

// Held reports whether the volume is full.
func (d diskFull) Held(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	r, _, err := contract.Load[filledRecord](target)
	if err != nil {
		return contract.Unseen(err)
	}
	holder, err := d.holders().pod(ctx, target)
	switch {
	case apierrors.IsNotFound(err):
		return contract.NotObserved("holder pod %s is gone, and its file with it", d.holders().name(target))
	case err != nil:
		return contract.Unseen(err)
	case holder.Status.Phase != corev1.PodRunning:
		return contract.NotObserved("holder pod %s is %s%s", holder.Name, holder.Status.Phase, whyEnded(holder))
	}
	state, err := d.run(ctx, holder.Name, diskfill.VerbShow)
	switch {
	case err != nil:
		return contract.Unseen(err)
	case !state.Full:
		return contract.NotObserved("the volume of claim %s is not filled any more", r.Claim)
	}
	return contract.Confirmed("of the %s of claim %s, %s are left, and the fault has %s", inBytes(state.Size), r.Claim,
		inBytes(state.Left), inBytes(state.Held))
}

// inBytes is a size for people.
func inBytes(bytes int64) string {
	return fmt.Sprintf("%.4g MiB", float64(bytes)/(1<<20))
}

// Describe says what the holder pod does.
func (d diskFull) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(r filledRecord) contract.Description {
		name := d.holders().name(target)
		return contract.Description{
			Action: fmt.Sprintf(
				"fill the %s of claim %s but %s, by a file without a name that pod %s on node %s has open",
				inBytes(r.Capacity), r.Claim, inBytes(d.leave), name, target.Node),
			Revert: "delete pod " + name,
			SelfEnding: fmt.Sprintf("the kernel frees the volume when the pod ends, and its program does %s after it began",
				d.lasts+outlasts),
		}
	})
}
