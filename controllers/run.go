package controllers

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// beforeNextManager is the time between the end of a manager and the start of the next.
const beforeNextManager = time.Second

// Run runs a manager that newManager returns until ctx ends. A manager also ends when it loses the leadership, or without the API server: then Run returns its
// error, unless this process has faults to revert. For their sake it goes on, with another manager.
func Run(ctx context.Context, s Settings, newManager func() (ctrl.Manager, error)) error {
	for {
		err := runManager(ctx, s, newManager)
		pending := s.Reverters.Pending()
		if ctx.Err() != nil || len(pending) == 0 {
			return err
		}
		ctrl.Log.Error(err, "the manager has ended; this process goes on, as it has faults to revert", "faults", pending)
		s.Runs.Close() // whoever leads now collects the records
		wait, stop := context.WithTimeout(ctx, beforeNextManager)
		<-wait.Done()
		stop()
	}
}

func runManager(ctx context.Context, s Settings, newManager func() (ctrl.Manager, error)) error {
	mgr, err := newManager()
	if err != nil {
		return fmt.Errorf("create manager: %w", err)
	}
	if err := Setup(mgr, s); err != nil {
		return fmt.Errorf("set up controllers: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run manager: %w", err)
	}
	return nil
}
