package fault

import (
	"context"
	"fmt"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis"
)

// setBack gives the settings the values that they had. The process that was recorded gets them in any case. Another one in the same pod read its
// file, or its arguments: what differs from the old values is set. Another pod of the same name is left alone, but where it has its file from a
// volume of the one that was hit: a value of the fault there was written by a CONFIG REWRITE while the fault lasted.
func (s settings) setBack(ctx context.Context, target *v1alpha1.FaultTarget) error {
	old := s.old(target)
	if len(old) == 0 { // nothing was recorded, so nothing was changed
		return nil
	}
	file, outlives := undoValue(target, undoFile)
	at, err := s.find(ctx, target)
	switch {
	case err != nil:
		return err
	case (at.whose == nobody || at.whose == replacement) && !outlives:
		return nil
	case at.address == "":
		return fmt.Errorf("pod %s is away, and its configuration file %s on a volume may have been rewritten: waiting for the next pod of that name, to compare", target.Pod, file)
	}
	now, err := s.get(ctx, at.address)
	if err != nil {
		return err
	}
	back := differing(now, old)
	if at.whose == original {
		return s.restore(ctx, target, at, back)
	}
	held := s.held(target, back)
	if at.whose == replacement {
		back = held
	}
	if _, noted := undoValue(target, undoHeld); len(held) > 0 && !noted {
		// Once the values are set back nothing would tell any more that the file holds others: first note it.
		setUndo(target, undoHeld, inWords(held))
		return &InProgress{Message: fmt.Sprintf("the next process of pod %s came up with %s: its configuration file was rewritten during the fault", target.Pod, inWords(held))}
	}
	return s.restore(ctx, target, at, back)
}

// held are those values that are the fault's.
func (s settings) held(target *v1alpha1.FaultTarget, now map[string]string) map[string]string {
	want, _ := s.asSet(target)
	found := map[string]string{}
	for name, value := range now {
		if value == want[name] {
			found[name] = value
		}
	}
	return found
}

// restore sets those of the settings back that differ, looks whether they are, and writes them to a file that holds the fault's.
func (s settings) restore(ctx context.Context, target *v1alpha1.FaultTarget, at process, differ map[string]string) error {
	old := s.old(target)
	back := map[string]string{}
	for name := range differ {
		back[name] = old[name]
	}
	if len(back) > 0 {
		if err := s.set(ctx, at.address, back); err != nil {
			if redis.IsReply(err) && strings.Contains(err.Error(), "try again later") {
				return &InProgress{Message: err.Error()}
			}
			return err
		}
		now, err := s.get(ctx, at.address)
		if err != nil {
			return err
		}
		if wrong := differing(now, back); len(wrong) > 0 {
			return fmt.Errorf("CONFIG GET at %s shows %s although %s was set", at.address, inWords(wrong), inWords(back))
		}
	}
	rewrite, err := s.fileHoldsFault(ctx, target, at)
	if err != nil || !rewrite {
		return err
	}
	return s.rewrite(ctx, at.address)
}

// fileHoldsFault says whether the server's configuration file was rewritten while the fault lasted. Sentinel does that to every server that it
// turns into another's replica.
func (s settings) fileHoldsFault(ctx context.Context, target *v1alpha1.FaultTarget, at process) (bool, error) {
	if at.whose != original {
		_, held := undoValue(target, undoHeld)
		return held, nil
	}
	info, err := s.info(ctx, at.address)
	if err != nil {
		return false, err
	}
	if infoValue(info, "config_file") == "" {
		return false, nil
	}
	now, counted := rewrites(info)
	before, known := undoValue(target, undoRewrites)
	if !counted || !known { // a server before Redis 7: only its sentinels are known to rewrite
		return len(s.Sentinels) > 0, nil
	}
	return fmt.Sprint(now) != before, nil
}

// rewrite writes the present values to the file. A file that cannot be written holds nothing of the fault.
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

// manualRevertCommand is the command that sets everything back; "" where nothing was recorded.
func (s settings) manualRevertCommand(target *v1alpha1.FaultTarget) string {
	old := s.old(target)
	if len(old) == 0 {
		return ""
	}
	words := []string{"CONFIG", "SET"}
	for _, name := range s.names() {
		words = append(words, name, old[name])
	}
	command := redisCLI(s.Surroundings, target, words...)
	if _, limited := old["maxclients"]; limited { // it may take some tries to get in
		command = "until " + command + " | grep -q OK; do sleep 1; done"
	}
	_, outlives := undoValue(target, undoFile)
	if _, held := undoValue(target, undoHeld); held || outlives || len(s.Sentinels) > 0 {
		command += " && " + redisCLI(s.Surroundings, target, "CONFIG", "REWRITE")
	}
	return command
}
