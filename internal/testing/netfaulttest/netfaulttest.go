// Package netfaulttest simulates pods in which faults of the network drop packets: the kubelet that
// starts the container, and the program in it, with rules in memory that end by themselves. The real
// program in a real kernel is tested in internal/netfault/kernel, and in real pods by test/e2e.
package netfaulttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/netfault"
)

// program is what runs in the containers.
const program = "/netfault"

// Pods are the pods of a cluster with their networks.
type Pods struct {
	pods client.Client

	mu    sync.Mutex
	rules map[types.UID]map[string]*rule // by pod and ID
	used  map[types.UID]time.Time        // when a program last ran in a pod
	in    map[types.UID]string           // the namespace of a pod
	// Refuse is what the API server says of every new container and every program; nil = nothing.
	Refuse error
	// Unsupported is why the kernel cannot delay packets; "" = it can.
	Unsupported string
	// Other runs what is none of this program; nil = nothing else is run.
	Other contract.Programs
}

// rule is what a real kernel would drop.
type rule struct {
	netfault.Rule
	until time.Time
	state netfault.State
}

// NewPods returns pods of a cluster, whose clock is the test's.
func NewPods(pods client.Client) *Pods {
	return &Pods{
		pods:  pods,
		rules: map[types.UID]map[string]*rule{},
		used:  map[types.UID]time.Time{},
		in:    map[types.UID]string{},
	}
}

// Add adds an ephemeral container to a pod, as the API server does. In a dry run it only says
// whether it would.
func (p *Pods) Add(
	ctx context.Context, object client.Object, patch client.Patch, dry bool,
) error {
	if err := errors.Join(ctx.Err(), p.Refuse); err != nil || dry {
		return err
	}
	pod := &corev1.Pod{}
	if err := p.pods.Get(ctx, client.ObjectKeyFromObject(object), pod); err != nil {
		return err
	}
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	before, err := json.Marshal(pod)
	if err != nil {
		return err
	}
	after, err := strategicpatch.StrategicMergePatch(before, data, pod)
	if err != nil {
		return err
	}
	changed := &corev1.Pod{}
	if err := json.Unmarshal(after, changed); err != nil {
		return err
	}
	if changed.UID != pod.UID {
		return errors.New("the pod has another UID")
	}
	return p.pods.Update(ctx, changed)
}

// Start starts the ephemeral containers of a pod, as its kubelet does.
func Start(pod *corev1.Pod) (changed bool) {
	for i := range pod.Spec.EphemeralContainers {
		name := pod.Spec.EphemeralContainers[i].Name
		if !slices.ContainsFunc(pod.Status.EphemeralContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.Name == name
		}) {
			pod.Status.EphemeralContainerStatuses = append(pod.Status.EphemeralContainerStatuses, corev1.ContainerStatus{
				Name:  name,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			})
			changed = true
		}
	}
	return changed
}

// Stop ends the container of a pod whose faults are over, and that none has used for a while, as
// somebody who kills it does: the next fault needs another one.
func (p *Pods) Stop(pod *corev1.Pod, unusedFor time.Duration) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, over := p.used[pod.UID]
	over = over && len(p.rules[pod.UID]) > 0 // on a slow machine the first one may come later
	for _, r := range p.rules[pod.UID] {
		over = over && r.state.Released
	}
	if !over || time.Since(at) < unusedFor {
		return false
	}
	for i := range pod.Status.EphemeralContainerStatuses {
		if s := &pod.Status.EphemeralContainerStatuses[i]; s.State.Running != nil {
			s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
			changed = true
		}
	}
	delete(p.used, pod.UID)
	return changed
}

// Run runs the program in a container that runs.
func (p *Pods) Run(
	ctx context.Context, name types.NamespacedName, container string, command ...string,
) ([]byte, error) {
	if err := errors.Join(ctx.Err(), p.Refuse); err != nil {
		return nil, err
	}
	if command[0] != program && p.Other != nil {
		return p.Other.Run(ctx, name, container, command...)
	}
	pod := &corev1.Pod{}
	if err := p.pods.Get(ctx, name, pod); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(pod.Status.EphemeralContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.Name == container && s.State.Running != nil
	}) {
		return nil, fmt.Errorf("container %s of pod %s does not run", container, name)
	}
	if len(command) < 3 || command[0] != program {
		return nil, fmt.Errorf("unexpected program %q", command)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used[pod.UID], p.in[pod.UID] = time.Now(), pod.Namespace
	state, err := p.act(pod.UID, command[1], command[2:])
	if err != nil {
		return nil, err
	}
	return json.Marshal(state)
}

func (p *Pods) act(pod types.UID, verb string, arguments []string) (netfault.State, error) {
	if p.rules[pod] == nil {
		p.rules[pod] = map[string]*rule{}
	}
	of := p.rules[pod]
	switch verb {
	case netfault.VerbTry:
		_, err := netfault.ParseRule(arguments)
		return netfault.State{Unsupported: p.Unsupported}, err
	case netfault.VerbHold, netfault.VerbRenew:
		asked, err := netfault.ParseRule(arguments)
		if err != nil {
			return netfault.State{}, err
		}
		there := of[asked.ID]
		if there != nil && there.left() == 0 || there == nil && verb == netfault.VerbRenew {
			return there.show(), nil // released, or lifted by the kernel
		}
		if there == nil {
			there = &rule{}
			of[asked.ID] = there
		}
		there.Rule, there.until = *asked, time.Now().Add(asked.For)
		return there.show(), nil
	case netfault.VerbRelease:
		of[arguments[0]] = &rule{state: netfault.State{Released: true}}
		return of[arguments[0]].show(), nil
	case netfault.VerbShow:
		return of[arguments[0]].show(), nil
	}
	return netfault.State{}, fmt.Errorf("%q is no verb", verb)
}

func (r *rule) left() time.Duration {
	if r == nil {
		return 0
	}
	return max(0, time.Until(r.until))
}

// show counts a packet whenever it is asked: its peers send all the time.
func (r *rule) show() netfault.State {
	if r == nil {
		return netfault.State{}
	}
	if r.state.Released {
		return r.state
	}
	r.state.Exists, r.state.Left = true, r.left()
	if r.state.Left > 0 && r.In {
		r.state.SeenIn, r.state.DroppedIn = r.state.SeenIn+1, r.state.DroppedIn+1
	}
	if r.state.Left > 0 && r.Out {
		r.state.SeenOut, r.state.DroppedOut = r.state.SeenOut+1, r.state.DroppedOut+1
	}
	return r.state
}

// InForce are the rules that drop packets in a namespace now, each in words, in order.
func (p *Pods) InForce(namespace string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for pod, rules := range p.rules {
		if p.in[pod] != namespace {
			continue
		}
		for id, r := range rules {
			if r.left() == 0 {
				continue
			}
			var peers []string
			for _, peer := range r.Peers {
				peers = append(peers, peer.String())
			}
			slices.Sort(peers)
			delay := ""
			if r.Delay.Latency > 0 {
				delay = fmt.Sprintf(", delayed by %s", r.Delay.Latency)
			}
			all = append(all, fmt.Sprintf("%s %s: in %t, out %t, except %t, share %d, peers %s%s", pod, id, r.In, r.Out,
				r.Except, r.Share, strings.Join(peers, " "), delay))
		}
	}
	slices.Sort(all)
	return all
}
