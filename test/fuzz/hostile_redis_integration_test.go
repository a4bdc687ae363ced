//go:build integration

package fuzz

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/redistest"
	"github.com/redquake/redquake/internal/testing/stage"
	"github.com/redquake/redquake/internal/testing/tcptest"
)

// falseReplies are what a hostile server says instead of a value.
var falseReplies = map[string]string{
	"long":      strings.Repeat("x", 64<<10),
	"controls":  "\x1b]0;owned\x07\x00\u202e\xff",
	"huge":      "99999999999999999999999",
	"negative":  "-9223372036854775808",
	"no-number": "nan",
	"empty":     "",
}

// lyingServer passes commands to a real server, and replaces the values in its replies: in INFO all but what makes it a
// primary, of settings, lists and errors all.
func lyingServer(t *testing.T, server, lie string, refuses bool) string {
	return tcptest.Listen(t, func(client net.Conn) {
		real, err := net.Dial("tcp", server)
		if err != nil {
			_ = client.Close()
			return
		}
		go func() {
			defer func() { _, _ = real.Close(), client.Close() }()
			in, answers := bufio.NewReader(client), bufio.NewReader(real)
			for {
				command, err := resp.ReadValue(in)
				if err != nil || len(command.Items) == 0 {
					return
				}
				if _, err := real.Write(encoded(nil, command)); err != nil {
					return
				}
				answer, err := resp.ReadValue(answers)
				if err != nil {
					return
				}
				if _, err := client.Write(encoded(nil, falsified(command, answer, lie, refuses))); err != nil {
					return
				}
			}
		}()
	})
}

// falsified is the reply of a hostile server.
func falsified(command, answer resp.Value, lie string, refuses bool) resp.Value {
	switch name := strings.ToUpper(command.Items[0].Text); {
	case name == "INFO":
		var out strings.Builder
		for line := range strings.Lines(answer.Text) {
			key, _, isField := strings.Cut(line, ":")
			if kept := key == "role" || key == "redis_mode" || key == "loading" || key == "redis_version"; !isField || kept {
				out.WriteString(line)
			} else {
				out.WriteString(key + ":" + strings.NewReplacer("\r", " ", "\n", " ").Replace(lie) + "\r\n")
			}
		}
		answer.Text = out.String()
	case refuses && name != "HELLO" && name != "CLIENT":
		return resp.Value{Type: '!', Text: "ERR " + lie}
	case name == "CONFIG" && strings.EqualFold(command.Items[1].Text, "SET"):
		return resp.Value{Type: '+', Text: "OK"}
	case name == "CONFIG" && len(answer.Items) > 0:
		for i := 1; i < len(answer.Items); i += 2 {
			answer.Items[i].Text = lie
		}
	case answer.Type == '$':
		answer.Text = lie
	}
	return answer
}

// encoded appends a value in the protocol.
func encoded(out []byte, v resp.Value) []byte {
	switch v.Type {
	case '*', '%', '~':
		n := len(v.Items)
		if v.Type == '%' {
			n /= 2
		}
		out = fmt.Appendf(out, "%c%d\r\n", v.Type, n)
		for _, item := range v.Items {
			out = encoded(out, item)
		}
		return out
	case '$', '!', '=':
		return fmt.Appendf(out, "%c%d\r\n%s\r\n", v.Type, len(v.Text), v.Text)
	case '_':
		return append(out, "$-1\r\n"...)
	}
	return fmt.Appendf(out, "%c%s\r\n", v.Type, v.Text)
}

// Whatever a server replies, the API server accepts the status that is made of it: the fault ends, with a reason.
func TestHostileRepliesAndTheirStatuses(t *testing.T) {
	t.Parallel()
	p := operatortest.NewPlace(t)
	real := redistest.NewServer(t, redistest.Options{}).Address()
	refused := &refusals{}
	p.Logger = funcr.New(refused.log, funcr.Options{Verbosity: 5})
	operatortest.StartKubelet(p, nil)
	operatortest.StartOperator(p, operatortest.Spy{})
	// with a load each, to be injected at the same time; the others are planned
	injected := []string{"long", "controls", "long-refused"}
	for _, name := range append(injected, "run") {
		p.Create(operatortest.NewLoadTest(name, real, func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(20)), Duration: operatortest.Length(time.Hour)}
		}))
	}
	planned := stage.KindsNamed("Config", "ClientPause of writes", "ClientKill", "PodKill", "ProcessCrash",
		"Hang by a script")
	for lie, text := range falseReplies {
		for name, address := range map[string]string{
			lie:              lyingServer(t, real, text, false),
			lie + "-refused": lyingServer(t, real, text, true),
		} {
			hostilePod(p, name, address)
			if slices.Contains(injected, name) {
				f := hostileFault(p, name, stage.KindsNamed("BackgroundSave")[0], 0)
				f.Spec.LoadTestRef.Name = name
				p.Create(f)
			}
			for i, kind := range planned {
				f := hostileFault(p, name, kind, i+1)
				f.Spec.DryRun = true
				p.Create(f)
			}
		}
	}
	faultsEnd(p, time.Minute)
	if lines := refused.all(); len(lines) > 0 {
		t.Errorf("%d statuses were refused: %s", len(lines), strings.Join(lines[:min(len(lines), 30)], "\n"))
	}
}

// hostileFault is a fault on one hostile server.
func hostileFault(p *operatortest.Place, server string, kind stage.Kind, number int) *v1alpha1.RedisFault {
	return operatortest.NewFault(fmt.Sprintf("%s-%d", server, number), "run", kind.Fault, func(f *v1alpha1.RedisFault) {
		f.Spec.Target = &v1alpha1.RedisTarget{
			PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": server}},
		}
		f.Spec.Trigger.After, f.Spec.RecoveryDeadline, f.Spec.Deadline = operatortest.Length(0),
			*operatortest.Length(time.Second),
			operatortest.Length(20*time.Second)
		kind.Spec(p, &f.Spec)
	})
}

// hostilePod creates a pod for a server.
func hostilePod(p *operatortest.Place, name, address string) {
	p.T.Helper()
	_, port, err := net.SplitHostPort(address)
	p.MustChange(err)
	number := 0
	_, err = fmt.Sscan(port, &number)
	p.MustChange(err)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName: "node-1",
			Containers: []corev1.Container{
				{Name: "redis", Image: "redis:7", Ports: []corev1.ContainerPort{{ContainerPort: int32(number)}}},
			},
		},
	}
	p.Create(pod)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "127.0.0.1", PodIPs: []corev1.PodIP{{IP: "127.0.0.1"}}}
	p.MustChange(p.Client.Status().Update(context.Background(), pod))
}
