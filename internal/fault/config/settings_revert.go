package config

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/target"
)

// revert gives the settings the values that they had, where they still have the fault's. What
// somebody else has set meanwhile stays, in memory and in the file. The process that was recorded
// is reverted in any case, another one in the same pod if it has a value of the fault: its file was
// rewritten while the fault lasted. So may be that of another pod of the same name, if it has its
// file from a volume of the one that was hit.
func (s settings) revert(
	ctx context.Context, t *v1alpha1.FaultTarget, record *settingsRecord,
) (contract.Progress, error) {
	at, err := s.Locate(ctx, t)
	switch {
	case err != nil:
		return contract.Progress{}, err
	case (at.Identity == target.Absent || at.Identity == target.Replacement) && record.File == "":
		return contract.Progress{}, nil
	case at.Address == "":
		return contract.Progress{}, fmt.Errorf(
			"pod %s does not run, and its configuration file %s on a volume may have been rewritten: "+
				"waiting for the next pod of that name, to compare", t.Pod, record.File)
	}
	now, err := s.get(ctx, at.Address)
	if err != nil {
		return contract.Progress{}, err
	}
	own, others := s.compare(now, *record)
	record.Left = others
	if len(own) > 0 && at.Identity != target.Original && record.Kept == "" {
		// Store first that the file contains other values: once the old ones are set nothing shows it.
		record.Kept = inWords(own)
		return contract.Underway(
			"the next process of pod %s started with %s: its configuration file was rewritten during the fault",
			t.Pod, record.Kept), nil
	}
	if len(own) > 0 {
		// by an operator that died; to store it first would keep the fault while the API server does not
		// answer
		record.Set = true
		progress, err := s.restore(ctx, at, own, *record)
		if err != nil || !progress.Complete() {
			return progress, err
		}
	}
	// Not earlier: it may be rewritten just before that.
	return contract.Progress{}, s.revertFile(ctx, t, at, record)
}

// revertFile writes the present values to a configuration file that contains the fault's, or
// records why it may contain them.
func (s settings) revertFile(
	ctx context.Context, t *v1alpha1.FaultTarget, at target.Process, record *settingsRecord,
) error {
	if at.Identity != target.Original {
		if record.Kept == "" {
			return nil
		}
		return s.RewriteFile(ctx, at.Address)
	}
	info, err := s.Info(ctx, at.Address, "everything")
	if err != nil || record.Sealed {
		return err
	}
	switch state, doubt := s.FileSince(record.Tally, info); {
	case state == target.FileRewritten:
		return s.RewriteFile(ctx, at.Address)
	case state == target.FileInDoubt && (record.Set || t.InjectedAt != nil):
		record.Doubt = doubt
	}
	return nil
}

// compare returns the values that differ from those before the fault: the fault's own, and what
// somebody else has set.
func (s settings) compare(
	now map[string]string, record settingsRecord,
) (own, others map[string]string) {
	own, others = map[string]string{}, map[string]string{}
	set := s.asSet(record)
	for name, value := range differing(now, record.Old) {
		switch {
		case value == set[name], sameValue(name, s.values[name], value):
			own[name] = value
		case !sameValue(name, record.Old[name], value):
			others[name] = value
		}
	}
	return own, others
}

// restore sets the settings that have values of the fault to their old ones, and verifies these.
func (s settings) restore(
	ctx context.Context, at target.Process, own map[string]string, record settingsRecord,
) (contract.Progress, error) {
	old := map[string]string{}
	for name := range own {
		old[name] = record.Old[name]
	}
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
	wrong := differing(now, old)
	maps.DeleteFunc(wrong, func(name, value string) bool { return sameValue(name, old[name], value) })
	if len(wrong) > 0 {
		return contract.Progress{}, fmt.Errorf("CONFIG GET at %s shows %s although %s was set",
			at.Address, inWords(wrong), inWords(old))
	}
	return contract.Progress{}, nil
}

// warnings say what the revert leaves.
func (s settings) warnings(t *v1alpha1.FaultTarget, record settingsRecord) []string {
	var found []string
	if len(record.Left) > 0 {
		set, said := s.asSet(record), []string{}
		for _, name := range slices.Sorted(maps.Keys(record.Left)) {
			said = append(said, fmt.Sprintf("%s (before the fault: %s, by the fault: %s)",
				inWords(map[string]string{name: record.Left[name]}), visible(record.Old[name]),
				visible(set[name])))
		}
		found = append(found,
			fmt.Sprintf(
				"pod %s has %s: somebody else has set that while the fault acted, so the revert leaves it",
				t.Pod, strings.Join(said, ", ")))
	}
	if record.Doubt != "" { // the values last, as they may be too long to be shown
		found = append(found,
			fmt.Sprintf(
				"the configuration file of pod %s may contain values of the fault, with which its next "+
					"process would start: %s. This writes all present settings to it: %s. The values: %s",
				t.Pod, record.Doubt, s.CLI(t, "CONFIG", "REWRITE"), inWords(s.asSet(record))))
	}
	return found
}
