package collect

import (
	"errors"
	"fmt"
)

// each calls f concurrently for every pod that is not lost, released or excluded by leaveOut, and
// joins the errors, each with its pod.
func (s *Session) each(leaveOut func(p *pod) bool, f func(p *pod) error) error {
	s.mu.Lock()
	var pods []*pod
	for _, p := range s.pods {
		if !p.gone && !p.released && !leaveOut(p) {
			pods = append(pods, p)
		}
	}
	s.mu.Unlock()
	failed := make([]error, len(pods))
	done := make(chan struct{})
	for i, p := range pods {
		go func() {
			if err := f(p); err != nil {
				failed[i] = fmt.Errorf("pod %d: %w", p.index, err)
			}
			done <- struct{}{}
		}()
	}
	for range pods {
		<-done
	}
	return errors.Join(failed...)
}

func never(*pod) bool {
	return false
}

// foreign says that the agent at the address is none of ours.
func foreign(p *pod) bool {
	return p.problem == WrongAgent
}

// troubled says that the pod has no process that could follow: none was started, or what answers is
// another.
func troubled(p *pod) bool {
	return p.problem != ""
}
