// Package diskfilltest simulates holder pods that fill volumes: the program in them, with a volume in
// memory that is free again when its pod is gone. The real program on a real file system is tested in
// internal/diskfill/holder, and in real pods by test/e2e.
package diskfilltest

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/diskfill"
)

// Volumes are those of the holder pods of a cluster.
type Volumes struct {
	pods client.Client

	mu    sync.Mutex
	holds map[types.UID]*volume // by holder pod
	// Refused is why no volume can be filled; "" = it can be.
	Refused string
}

// volume is one that a holder pod uses.
type volume struct {
	of       types.NamespacedName
	order    diskfill.Order
	until    time.Time // it is full; zero = it is not
	released bool
}

// New returns the volumes of a cluster, whose clock is the test's.
func New(pods client.Client) *Volumes {
	return &Volumes{pods: pods, holds: map[types.UID]*volume{}}
}

// Command reports whether it is this program's.
func Command(words []string) bool {
	return len(words) > 2 && words[0] == "/redquake" && words[1] == "diskfill"
}

// Run runs the program in a holder pod that runs.
func (v *Volumes) Run(
	ctx context.Context, name types.NamespacedName, _ string, command ...string,
) ([]byte, error) {
	pod := &corev1.Pod{}
	if err := errors.Join(ctx.Err(), v.pods.Get(ctx, name, pod)); err != nil {
		return nil, err
	}
	if pod.Status.Phase != corev1.PodRunning {
		return nil, fmt.Errorf("pod %s does not run", name)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	of := v.holds[pod.UID]
	if of == nil {
		of = &volume{of: name}
		v.holds[pod.UID] = of
	}
	state, err := v.act(of, command[2], command[3:])
	if err != nil {
		return nil, err
	}
	return json.Marshal(state)
}

func (v *Volumes) act(of *volume, verb string, arguments []string) (state diskfill.State, err error) {
	switch verb {
	case diskfill.VerbCheck, diskfill.VerbFill:
		order, err := diskfill.ParseOrder(arguments)
		if err != nil {
			return state, err
		}
		state.Refused = v.Refused
		if verb == diskfill.VerbFill && v.Refused == "" && !of.released && of.until.IsZero() {
			of.order, of.until = order, time.Now().Add(order.For)
		}
	case diskfill.VerbRelease:
		of.until, of.released = time.Time{}, true
	case diskfill.VerbShow:
	default:
		return state, fmt.Errorf("%q is no verb", verb)
	}
	state.Released, state.Full = of.released, of.full()
	state.Size, state.Left = of.order.Capacity, of.order.Capacity
	if state.Full {
		state.Left = of.order.Leave
		state.Held = state.Size - state.Left
	}
	return state, nil
}

func (of *volume) full() bool {
	return time.Now().Before(of.until)
}

// Full returns what is full in a namespace, sorted. A volume is free once its holder pod is gone.
func (v *Volumes) Full(ctx context.Context, namespace string) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var full []string
	for uid, of := range v.holds {
		if of.of.Namespace != namespace || !of.full() {
			continue
		}
		pod := &corev1.Pod{}
		err := v.pods.Get(ctx, of.of, pod)
		if apierrors.IsNotFound(err) || err == nil && pod.UID != uid {
			delete(v.holds, uid)
			continue
		}
		name, _, _ := strings.Cut(of.of.Name, "-full-")
		full = append(full, "a volume is full by "+name)
	}
	slices.Sort(full)
	return full
}
