package config

import (
	"context"
	"fmt"
	"strings"

	"github.com/redquake/redquake/internal/redis"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target"
)

// revert gives the settings the values that they had. The process that was recorded gets them in any case. Another one in the same pod read its
// file, or its arguments: what differs from the old values is set. Another pod of the same name is not changed, unless it has its file from a
// volume of the one that was hit: a value of the fault there was written by a CONFIG REWRITE while the fault lasted.
func (s settings) revert(ctx context.Context, t *v1alpha1.FaultTarget, record *settingsRecord) (contract.Progress, error) {
	at, err := s.Locate(ctx, t)
	switch {
	case err != nil:
		return contract.Progress{}, err
	case (at.Identity == target.Absent || at.Identity == target.Replacement) && record.File == "":
		return contract.Progress{}, nil
	case at.Address == "":
		return contract.Progress{}, fmt.Errorf("pod %s does not run, and its configuration file %s on a volume may have been rewritten: waiting for the next pod of that name, to compare", t.Pod, record.File)
	}
	now, err := s.get(ctx, at.Address)
	if err != nil {
		return contract.Progress{}, err
	}
	differ := differing(now, record.Old)
	if at.Identity == target.Original {
		return s.restore(ctx, at, differ, *record)
	}
	kept := s.kept(differ, *record)
	if at.Identity == target.Replacement {
		differ = kept
	}
	if len(kept) > 0 && record.Kept == "" {
		// Store first that the file contains other values: once the old ones are set nothing shows it.
		record.Kept = inWords(kept)
		return contract.Underway("the next process of pod %s started with %s: its configuration file was rewritten during the fault", t.Pod, record.Kept), nil
	}
	return s.restore(ctx, at, differ, *record)
}

// kept are the values that equal the fault's.
func (s settings) kept(now map[string]string, record settingsRecord) map[string]string {
	want := s.asSet(record)
	found := map[string]string{}
	for name, value := range now {
		if value == want[name] {
			found[name] = value
		}
	}
	return found
}

// restore sets those settings that differ to their old values, verifies them, and writes them to a configuration file that contains the fault's.
func (s settings) restore(ctx context.Context, at target.Process, differ map[string]string, record settingsRecord) (contract.Progress, error) {
	old := map[string]string{}
	for name := range differ {
		old[name] = record.Old[name]
	}
	if len(old) > 0 {
		if err := s.set(ctx, at.Address, old); err != nil {
			if redis.IsReply(err) && strings.Contains(err.Error(), "try again later") {
				return contract.Underway("%v", err), nil
			}
			return contract.Progress{}, err
		}
		now, err := s.get(ctx, at.Address)
		if err != nil {
			return contract.Progress{}, err
		}
		if wrong := differing(now, old); len(wrong) > 0 {
			return contract.Progress{}, fmt.Errorf("CONFIG GET at %s shows %s although %s was set", at.Address, inWords(wrong), inWords(old))
		}
	}
	rewrite, err := s.fileHasFault(ctx, at, record)
	if err != nil || !rewrite {
		return contract.Progress{}, err
	}
	return contract.Progress{}, s.rewrite(ctx, at.Address)
}

// fileHasFault reports whether the server's configuration file was rewritten during the fault, as Sentinel does on every server that it makes a
// replica of another.
func (s settings) fileHasFault(ctx context.Context, at target.Process, record settingsRecord) (bool, error) {
	if at.Identity != target.Original {
		return record.Kept != "", nil
	}
	info, err := s.Info(ctx, at.Address, "everything")
	if err != nil {
		return false, err
	}
	if info["config_file"] == "" {
		return false, nil
	}
	now, counted := rewrites(info)
	if !counted || record.Rewrites == nil { // a server before Redis 7 does not count: assume that its sentinels rewrote the file
		return len(s.Sentinels.Addresses) > 0, nil
	}
	return now != *record.Rewrites, nil
}

// rewrite writes the present values to the file. A file that cannot be written contains nothing of the fault.
func (s settings) rewrite(ctx context.Context, address string) error {
	_, err := s.Servers.Do(ctx, address, s.Login, "CONFIG", "REWRITE")
	if err == nil || !redis.IsReply(err) {
		return err
	}
	for _, fine := range []string{"running without a config file", "Read-only file system", "Permission denied"} {
		if strings.Contains(err.Error(), fine) {
			return nil
		}
	}
	return err
}
