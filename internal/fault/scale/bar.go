package scale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/target"
)

// An added server is told never to become the primary: the revert removes its pod, which it must
// not do to a primary. A pod that stays is told the opposite.

// bar is the setting that tells a server never to become the primary, and its value.
type bar struct{ setting, value string }

func (m member) bar() bar {
	if m.Slot != nil {
		return bar{"cluster-replica-no-failover", "yes"}
	}
	return bar{"replica-priority", "0"} // of Sentinel
}

func (b bar) String() string {
	return b.setting + " " + b.value
}

// barred reports whether a server may have the fault's bar.
func (m member) barred() bool {
	return m.Former != "" && m.Former != m.bar().value && m.Refused == "" && !m.Lifted
}

// lower bars an added server, once for each process. What it had before is recorded and stored
// first. Where that is refused, the record says so.
func (s *replicaScale) lower(ctx context.Context, m *member, own serverInfo) string {
	if s.by < 0 || m.Barred == own.RunID {
		return ""
	}
	if m.FormerOf != own.RunID {
		return s.recordFormer(ctx, m, own)
	}
	b := m.bar()
	_, err := s.Servers.Do(ctx, m.Address, s.Login, "CONFIG", "SET", b.setting, b.value)
	if err != nil && !redis.IsReply(err) {
		return fmt.Sprintf("could not be told never to become the primary: %v", err)
	}
	m.Barred, m.Refused = own.RunID, ""
	if err != nil {
		m.Refused = fmt.Sprintf("CONFIG SET %s is refused: %v", b.setting, err)
	}
	return ""
}

// recordFormer records what a server has instead of the bar.
func (s *replicaScale) recordFormer(ctx context.Context, m *member, own serverInfo) string {
	b := m.bar()
	found, err := s.Settings(ctx, m.Address, b.setting)
	former, ok := found[b.setting]
	switch {
	case err != nil && !redis.IsReply(err):
		return fmt.Sprintf("could not be asked for %s: %v", b.setting, err)
	case err != nil:
		m.Barred = own.RunID
		m.Refused = fmt.Sprintf("CONFIG GET %s is refused: %v", b.setting, err)
		return ""
	case !ok:
		m.Barred = own.RunID
		m.Refused = fmt.Sprintf("it has no setting %s", b.setting)
		return ""
	}
	info, err := s.Info(ctx, m.Address, "everything")
	if err != nil {
		return fmt.Sprintf("could not be asked for its counts: %v", err)
	}
	if former != b.value || m.Former == "" { // else it has the bar of the process before from its file
		m.Former = former
	}
	m.FormerOf, m.Tally = own.RunID, target.TallyOf(info)
	return "is to be told never to become the primary"
}

// lift takes the bar from the added servers in some pods, and says so in the record, which is
// stored even where it fails.
func (s *replicaScale) lift(
	ctx context.Context, of *v1alpha1.FaultTarget, record *scaleRecord, stays func(pod string) bool,
) error {
	var failed []error
	for _, name := range record.pods() {
		m := record.Members[name]
		if !m.barred() || !stays(name) {
			continue
		}
		if err := s.liftOne(ctx, name, &m); err != nil {
			failed = append(failed,
				fmt.Errorf("%s still has %s, with which it never becomes the primary: %w", name, m.bar(), err))
		}
		record.setMember(name, m)
	}
	return errors.Join(append(failed, contract.Save(of, *record))...)
}

func (s *replicaScale) liftOne(ctx context.Context, name string, m *member) error {
	pod, err := s.Pod(ctx, name)
	switch {
	case apierrors.IsNotFound(err), err == nil && pod.DeletionTimestamp != nil:
		return nil
	case err != nil:
		return err
	case pod.Status.PodIP == "":
		return errors.New("it does not run")
	}
	m.Address = s.Address(pod)
	b := m.bar()
	found, err := s.Settings(ctx, m.Address, b.setting)
	if err != nil {
		return err
	}
	now := found[b.setting]
	if now != b.value && now != m.Former { // somebody else's
		m.Former = ""
		return nil
	}
	return s.unbar(ctx, m)
}

// unbar gives a server the value that it had instead of the bar, in memory and in a file that was
// rewritten meanwhile.
func (s *replicaScale) unbar(ctx context.Context, m *member) error {
	b := m.bar()
	_, err := s.Servers.Do(ctx, m.Address, s.Login, "CONFIG", "SET", b.setting, m.Former)
	if err != nil {
		return err
	}
	state, doubt, err := s.fileOf(ctx, m)
	if err == nil && state == target.FileRewritten {
		err = s.RewriteFile(ctx, m.Address)
		if redis.IsReply(err) {
			doubt, err = fmt.Sprintf("CONFIG REWRITE is refused: %v", err), nil
		}
	}
	if err == nil {
		m.Lifted, m.Doubt = true, doubt
	}
	return err
}

// fileOf is what is known of a server's configuration file since the bar. Another process has the
// bar from its file.
func (s *replicaScale) fileOf(ctx context.Context, m *member) (target.FileState, string, error) {
	info, err := s.Info(ctx, m.Address, "everything")
	if err != nil {
		return target.FileUntouched, "", err
	}
	if info["run_id"] != m.FormerOf {
		return target.FileRewritten, "", nil
	}
	state, doubt := s.FileSince(m.Tally, info)
	return state, doubt, nil
}

// cleanFiles takes the bar out of the configuration files of the servers that are removed: the next
// pod of such a name may get its volume. One that does not answer is removed nevertheless.
func (s *replicaScale) cleanFiles(ctx context.Context, now *scaling) error {
	for _, name := range now.changed() {
		m := now.record.Members[name]
		if !m.barred() {
			continue
		}
		state, _, err := s.fileOf(ctx, &m)
		if err != nil || state != target.FileRewritten {
			continue
		}
		if err := s.unbar(ctx, &m); err != nil {
			return fmt.Errorf("take %s out of the configuration file of %s: %w", m.bar(), name, err)
		}
		// It must not become the primary before it is removed.
		_, err = s.Servers.Do(ctx, m.Address, s.Login, "CONFIG", "SET", m.bar().setting, m.bar().value)
		if err != nil {
			return fmt.Errorf("set %s of %s again: %w", m.bar(), name, err)
		}
	}
	return nil
}

// lifted says of the added servers in some pods whether they may become the primary again.
func (r *scaleRecord) lifted(pods []string) string {
	var said []string
	for _, name := range r.pods() {
		m := r.Members[name]
		if m.Lifted && slices.Contains(pods, name) {
			said = append(said, fmt.Sprintf("%s stays, and may become the primary again (%s %s)", name,
				m.bar().setting, m.Former))
		}
	}
	return strings.Join(said, "; ")
}

// Leave implements contract.Leaver: the added pods stay.
func (s *replicaScale) Leave(ctx context.Context, of *v1alpha1.FaultTarget) error {
	record, recorded, err := contract.Load[scaleRecord](of)
	if err != nil || !recorded {
		return err
	}
	return s.lift(ctx, of, &record, func(string) bool { return true })
}

// Warnings implements contract.Warner.
func (s *replicaScale) Warnings(of *v1alpha1.FaultTarget) []string {
	record, _, err := contract.Load[scaleRecord](of)
	if err != nil {
		return nil
	}
	var found []string
	for _, name := range record.pods() {
		if m := record.Members[name]; m.Doubt != "" {
			found = append(found,
				fmt.Sprintf(
					"the configuration file of pod %s may contain %s, with which its next process would never "+
						"become the primary: %s. This writes all present settings to it: %s",
					name, m.bar(), m.Doubt, s.cli(of, name, m, "CONFIG", "REWRITE")))
		}
	}
	return found
}

// cli is the shell command by which a person sends a command to an added server.
func (s *replicaScale) cli(of *v1alpha1.FaultTarget, pod string, m member, words ...string) string {
	return s.CLI(&v1alpha1.FaultTarget{
		Pod:       pod,
		Container: of.Container,
		Address:   m.Address,
	},
		words...)
}
