package lock

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

func of(load string, changes ...string) func(*Claim) {
	return func(c *Claim) { c.Load, c.Changes = load, changes }
}

func inForce(c *Claim) { c.Load, c.InForce, c.Changes = "cache", true, []string{"appendfsync"} }

// Faults on the load of a setting that is in force act beside it, others do not, and the same is never changed twice.
func TestBesideASetting(t *testing.T) {
	setting := claim("setting", inForce)
	for name, tc := range map[string]struct {
		wanted         Claim
		contest, clash bool
	}{
		"a fault on its load":            {claim("x", of("cache", "PodKill")), false, false},
		"a fault on another load":        {claim("x", of("other", "PodKill")), true, false},
		"a fault with a load of its own": {claim("x", of("", "PodKill")), true, false},
		"the same load elsewhere": {claim("x", func(c *Claim) {
			of("cache",
				"PodKill")(c)
			elsewhere(c)
		}), false, false},
		"another parameter":                {claim("x", of("cache", "hz", "maxmemory")), false, false},
		"the same parameter":               {claim("x", of("cache", "appendfsync", "hz")), false, true},
		"the same parameter, another load": {claim("x", of("other", "appendfsync")), true, false},
		"the same parameter of another pod": {claim("x", func(c *Claim) {
			of("cache", "appendfsync")(c)
			c.Pods = []string{
				"redis-9",
			}
		}), false, false},
		"another setting in force": {claim("x", func(c *Claim) {
			inForce(c)
			c.Changes = []string{
				"hz",
			}
		}), false, false},
	} {
		for _, held := range [][]Claim{{setting}, {tc.wanted}} { // in either role
			wanted := tc.wanted
			if held[0].UID == wanted.UID {
				wanted = setting
			}
			if on := Contested(wanted, held[0]); (on != "") != tc.contest {
				t.Errorf("%s: contested: %q", name, on)
			}
		}
		if why := Clash(tc.wanted, setting); (why != "") != tc.clash ||
			tc.clash && why != "spec.action: RedisFault setting, a setting of RedisLoadTest cache, changes appendfsync of pod "+
				"redis-0 already, for as long as the load runs" {
			t.Errorf("%s: clash: %q", name, why)
		}
	}
	late := claim("setting", func(c *Claim) { inForce(c); c.InForce = false })
	if Contested(claim("x", of("cache", "PodKill")), late) == "" ||
		Clash(claim("x", of("cache", "appendfsync")), late) != "" {
		t.Error("a setting that is not in force is acted beside")
	}
}

// Who waits for a setting, which stays until its load has ended, is in no other fault's way on that load: the load may
// wait for that one.
func TestQueueBesideASetting(t *testing.T) {
	setting := claim("setting", inForce)
	wanted := claim("x", func(c *Claim) { of("cache", "PodKill")(c); after(9, nil)(c) })
	stranger := claim("stranger", func(c *Claim) { of("other", "PodKill")(c); after(2, waits(v1alpha1.LimitFaults))(c) })
	if other, on, blocked := Blocker(wanted, []Claim{setting}, []Claim{stranger}); blocked {
		t.Errorf("it waits for %s on %s", other.Fault, on)
	}
	if _, _, blocked := Blocker(stranger, []Claim{setting}, nil); !blocked {
		t.Error("a fault of another load does not wait for the setting")
	}
	if _, _, blocked := Blocker(wanted, []Claim{}, []Claim{stranger}); !blocked {
		t.Error("without a setting, who has waited for longer comes first")
	}
	fellow := claim("fellow", func(c *Claim) { of("cache", "PodKill")(c); after(2, nil)(c) })
	if _, _, blocked := Blocker(wanted, []Claim{setting}, []Claim{fellow}); !blocked {
		t.Error("on the same load, who has waited for longer comes first")
	}
	one := Limit{v1alpha1.LimitFaults, 1, "maxFaults"}
	if why, full := one.Full(wanted, []Claim{setting}, []Claim{stranger}); full {
		t.Error(why)
	}
	if _, full := one.Full(stranger, []Claim{setting}, nil); !full {
		t.Error("a setting does not count for a fault of another load")
	}
	if _, full := one.Full(wanted, []Claim{setting, claim("y", of("cache", "PodKill"))}, nil); !full {
		t.Error("a fault beside the setting does not count")
	}
	if fits, _ := one.Turn(wanted, []Claim{setting, wanted}); !fits {
		t.Error("a recorded fault does not fit beside the setting")
	}
	two := Limit{v1alpha1.LimitFaults, 2, "maxFaults"}
	if _, full := two.Full(wanted, []Claim{setting, claim("y", of("cache", "PodKill"))}, []Claim{
		claim("w", func(c *Claim) { of("third", "PodKill")(c); after(2, waits(v1alpha1.LimitFaults))(c) }),
	}); full {
		t.Error("it waits for a fault that waits for the setting")
	}
}

// Faults of which one names the other act at the same time, whichever of them it is, unless both change the same.
func TestBesideByName(t *testing.T) {
	naming := func(name string, change func(*Claim)) func(*Claim) {
		return func(c *Claim) {
			c.Beside = []string{name}
			if change != nil {
				change(c)
			}
		}
	}
	changes := func(what ...string) func(*Claim) { return func(c *Claim) { c.Changes = what } }
	whole := func(c *Claim) { c.Whole = true }
	rolls := func(c *Claim) { c.Whole, c.Rolls = true, true }
	const shared = ", too, and both act on "
	for name, tc := range map[string]struct {
		a, b      Claim
		contested bool
		clash     string // "" = none
	}{
		"neither names the other": {claim("a", nil), claim("b", nil), true, ""},
		"one names the other":     {claim("a", naming("b", nil)), claim("b", nil), false, ""},
		"it names a third":        {claim("a", naming("c", nil)), claim("b", nil), true, ""},
		"of another namespace":    {claim("a", naming("b", on("n"))), claim("b", func(c *Claim) { elsewhere(c); on("n")(c) }), true, ""},
		"different settings":      {claim("a", naming("b", changes("hz"))), claim("b", changes("timeout")), false, ""},
		"the same setting": {
			claim("a", naming("b", changes("hz"))), claim("b", changes("timeout", "hz")), true, "hz" + shared + "pod redis-0",
		},
		"the same setting of other pods": {
			claim("a", naming("b", changes("hz"))), claim("b", func(c *Claim) { c.Changes, c.Pods = []string{"hz"}, []string{"redis-1"} }),
			false, "",
		},
		"the same node": {claim("a", naming("b", on("n"))), claim("b", on("m", "n")), true, "the taint of node n" + shared + "node n"},
		"a workload":    {claim("a", naming("b", nil)), claim("b", whole), false, ""},
		"a roll":        {claim("a", naming("b", whole)), claim("b", rolls), false, ""},
		"two rolls":     {claim("a", naming("b", rolls)), claim("b", rolls), true, "the pod template" + shared + "pod redis-0"},
		"one that removes servers, one that silences some": {
			claim("a", naming("b", func(c *Claim) { c.Removes, c.Whole = true, true })),
			claim("b", func(c *Claim) { c.Silent = true }), true, "few",
		},
		"one that removes servers, one that changes settings": {
			claim("a", naming("b", func(c *Claim) { c.Removes, c.Whole = true, true })), claim("b", changes("hz")), false, "",
		},
		"another one of that name": {
			claim("a", naming("b", func(c *Claim) { c.BesideUIDs = []string{"former"} })), claim("b", nil), true, "",
		},
		"the one that is recorded": {
			claim("a", naming("b", func(c *Claim) { c.BesideUIDs = []string{"b"} })), claim("b", nil), false, "",
		},
		"the same Deployment": {
			claim("a", naming("b", func(c *Claim) { c.Deployment = "ops/operator" })),
			claim("b", func(c *Claim) { c.Deployment = "ops/operator" }), true,
			"the size of Deployment ops/operator" + shared + "Deployment ops/operator",
		},
	} {
		for _, pair := range [][2]Claim{{tc.a, tc.b}, {tc.b, tc.a}} {
			if on := Contested(pair[0], pair[1]); (on != "") != tc.contested {
				t.Errorf("%s: contested: %q", name, on)
			}
			want := ""
			if tc.clash == "few" {
				want = "spec.beside: of this fault and RedisFault " + pair[1].Fault.Name + " one removes servers, and the other " +
					"one keeps some from serving, and both act on pod redis-0: the last copy might be among them. " +
					"Without beside one acts after the other"
			} else if tc.clash != "" {
				want = "spec.beside: RedisFault " + pair[1].Fault.Name + " changes " + tc.clash +
					": whichever is reverted last would restore what the other one had set. Without beside one acts after the other"
			}
			if why := Clash(pair[0], pair[1]); why != want {
				t.Errorf("%s: clash: %q, want %q", name, why, want)
			}
		}
	}
}

// Who waits for a fault is in nobody's way who acts beside that: it would be over by then.
func TestQueueBesideByName(t *testing.T) {
	first := claim("first", nil)
	wanted := claim("x", func(c *Claim) { after(9, nil)(c); c.Beside = []string{"first"} })
	stranger := claim("stranger", after(2, nil))
	if other, on, blocked := Blocker(wanted, []Claim{first}, []Claim{stranger}); blocked {
		t.Errorf("it waits for %s on %s", other.Fault, on)
	}
	if _, _, blocked := Blocker(stranger, []Claim{first}, nil); !blocked {
		t.Error("who names nobody does not wait")
	}
	if _, _, blocked := Blocker(wanted, nil, []Claim{stranger}); !blocked {
		t.Error("once the other one is over, who has waited for longer comes first")
	}
	one := Limit{v1alpha1.LimitFaults, 1, "maxFaults"}
	if _, full := one.Full(wanted, []Claim{first}, nil); !full {
		t.Error("two faults are counted as one")
	}
}

func TestInForce(t *testing.T) {
	now := metav1.NewMicroTime(epoch)
	made := func(change func(*v1alpha1.RedisFault)) *v1alpha1.RedisFault {
		f := &v1alpha1.RedisFault{
			Spec: v1alpha1.RedisFaultSpec{Setting: true, LoadTestRef: &v1alpha1.LoadTestReference{Name: "cache"}},
		}
		f.Status.StartTime, f.Status.Holding = &now, new(true)
		f.Status.Targets = []v1alpha1.FaultTarget{
			{Pod: "redis-0", InjectedAt: &now, ActiveAt: &now},
			{Pod: "redis-1", InjectedAt: &now, ActiveAt: &now},
		}
		change(f)
		return f
	}
	if f := made(func(*v1alpha1.RedisFault) {}); !InForce(f) {
		t.Error("it is not in force")
	} else if c, _ := Held(f, contract.Traits{}); !c.InForce || c.Load != "cache" {
		t.Errorf("%+v", c)
	}
	for name, change := range map[string]func(*v1alpha1.RedisFault){
		"no setting":   func(f *v1alpha1.RedisFault) { f.Spec.Setting = false },
		"not complete": func(f *v1alpha1.RedisFault) { f.Status.Targets[1].ActiveAt = nil },
		"no targets":   func(f *v1alpha1.RedisFault) { f.Status.Targets = nil },
		"not recorded": func(f *v1alpha1.RedisFault) { f.Status.StartTime = nil },
		"aborted":      func(f *v1alpha1.RedisFault) { f.Spec.Abort = true },
		"deleted":      func(f *v1alpha1.RedisFault) { f.DeletionTimestamp = new(metav1.NewTime(epoch.Add(time.Second))) },
		"after a load": func(f *v1alpha1.RedisFault) { f.Status.HeldUntil = &now },
		"reverting":    func(f *v1alpha1.RedisFault) { f.Status.RevertingSince = &now },
	} {
		if InForce(made(change)) {
			t.Errorf("%s: it is in force", name)
		}
	}
}
