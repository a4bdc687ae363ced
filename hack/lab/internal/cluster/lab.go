// Package cluster boots the lab, reports its state, and takes it down.
package cluster

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/redquake/redquake/hack/lab/internal/api"
	"github.com/redquake/redquake/hack/lab/internal/cgroup"
	"github.com/redquake/redquake/hack/lab/internal/config"
	"github.com/redquake/redquake/hack/lab/internal/node"
	"github.com/redquake/redquake/hack/lab/internal/settings"
)

// Lab is the one lab of this machine, up or not.
type Lab struct {
	State      settings.State
	Cgroups    cgroup.Hierarchies
	Kubernetes string    // the version that Up boots
	Progress   io.Writer // progress messages
}

// Node returns the node called name.
func (l *Lab) Node(name string) (node.Host, error) {
	n, err := settings.NodeByName(name)
	return node.Host{State: l.State, Node: n, Cgroups: l.Cgroups}, err
}

func (l *Lab) nodes() []node.Host {
	var all []node.Host
	for _, n := range settings.Nodes {
		all = append(all, node.Host{State: l.State, Node: n, Cgroups: l.Cgroups})
	}
	return all
}

func (l *Lab) client() (*api.Client, error) {
	return api.New(config.Server, l.State.PKI(), settings.NetNS)
}

// Change runs f while no other command changes the lab, as a member of the lab's cgroup: processes
// that f starts are found by `down`, even if this process is killed before it could record it.
func (l *Lab) Change(f func() error) error {
	unlock, err := l.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := l.Cgroups.Create(settings.DaemonsCgroup); err != nil {
		return err
	}
	if err := l.Cgroups.Weigh(settings.CgroupRoot, settings.Weight); err != nil {
		return err
	}
	if err := l.Cgroups.Join(settings.DaemonsCgroup); err != nil {
		return err
	}
	return f()
}

// lock waits until no other command changes the lab. The lock is an abstract socket: it leaves no
// file, and the kernel frees it when this process ends, for whatever reason.
func (l *Lab) lock() (unlock func(), err error) {
	for waited := time.Duration(0); ; waited += 100 * time.Millisecond {
		listener, err := net.Listen("unix", settings.LockSocket)
		if err == nil {
			return func() { listener.Close() }, nil
		}
		if waited == 0 {
			fmt.Fprintln(l.Progress, "waiting for another command that changes the lab ...")
		}
		if waited > 15*time.Minute {
			return nil, errors.New(
				"another command has been changing the lab for 15 minutes; find it with: ps -C lab")
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// New returns the lab that the environment selects.
func New(progress io.Writer) (*Lab, error) {
	state, err := settings.StateFromEnv()
	if err != nil {
		return nil, err
	}
	cgroups, err := cgroup.Discover()
	if err != nil {
		return nil, err
	}
	return &Lab{
		State: state, Cgroups: cgroups, Kubernetes: settings.Kubernetes(), Progress: progress,
	}, nil
}
