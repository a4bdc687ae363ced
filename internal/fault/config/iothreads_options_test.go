package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// Options reach the server of a container by its arguments, by a variable, or not at all.
func TestIOThreadsOptionSource(t *testing.T) {
	const arguments, redisFlags, valkeyFlags = "arguments", "REDIS_EXTRA_FLAGS", "VALKEY_EXTRA_FLAGS"
	sh := func(script string) []string { return []string{"/bin/bash", "-c", script} }
	for _, tc := range []struct {
		command, args []string
		image, want   string
		why           string // where want is ""
	}{
		{command: []string{"redis-server"}, want: arguments},
		{command: []string{"/usr/local/bin/valkey-server", "/etc/valkey.conf"}, want: arguments},
		{args: []string{"redis-server", "--save", ""}, want: arguments},
		{args: []string{"--appendonly", "yes"}, want: arguments},
		{args: []string{"/etc/redis.conf"}, want: arguments},
		{command: []string{"tini", "--"}, args: []string{"redis-server"}, want: arguments},
		// whether or not the server accepts it
		{command: []string{"docker-entrypoint.sh"}, args: []string{"redis-server", "-c"}, want: arguments},
		{
			args:  []string{"/opt/bitnami/scripts/redis/run.sh", "--maxclients", "100"},
			image: "bitnami/redis:8.2",
			want:  arguments,
		},
		{why: "neither command nor args"},
		{image: "docker.io/library/redis:7", why: "neither command nor args"},
		{image: "example.com/notbitnami/redis", why: "neither command nor args"},
		{image: "docker.io/bitnami/redis-sentinel:8.2.1", why: "neither command nor args"},
		{command: sh("redis-server /etc/redis.conf"), why: "runs a script"},
		{command: sh("redis-server"), why: "runs a script"},
		{command: []string{"/bin/sh", "-ec"}, args: []string{"redis-server"}, why: "runs a script"},
		{command: []string{"/bin/bash"}, args: []string{"-c", "/opt/scripts/start-node.sh"}, why: "runs a script"},
		{args: []string{"-c", "redis-server"}, why: "runs a script"},
		{command: []string{"/start.sh"}, why: "runs a script"},
		{command: []string{"/start.sh"}, args: []string{"--port", "1"}, why: "runs a script"},

		{image: "bitnami/redis", want: redisFlags},
		{image: "docker.io/bitnamilegacy/redis-cluster:8.2.1-debian-12-r0", want: redisFlags},
		{image: "registry.example.com:5000/mirror/bitnami/valkey@sha256:0123", want: valkeyFlags},
		{image: "valkey/valkey:9", want: valkeyFlags},
		{
			command: sh(
				"export REDIS_NODES=x\n/opt/bitnami/scripts/redis-cluster/entrypoint.sh /opt/bitnami/scripts/redis-cluster/run.sh\n"),
			want: redisFlags,
		},
		{
			command: sh("/opt/bitnami/scripts/valkey-cluster/entrypoint.sh /opt/bitnami/scripts/valkey-cluster/run.sh"),
			want:    valkeyFlags,
		},
		{
			command: []string{"/bin/bash"},
			args:    []string{"-ec", "/opt/bitnami/scripts/start-scripts/start-master.sh"},
			why: "start-master.sh of Bitnami's chart, which passes no variable on to the server. Add io-threads to the " +
				"chart's value master.extraFlags",
		},
		{
			command: []string{"/bin/bash"},
			args:    []string{"-ec", "/opt/bitnami/scripts/start-scripts/start-primary.sh"},
			why:     "value primary.extraFlags",
		},
		{
			command: []string{"/bin/bash"},
			args:    []string{"-ec", "/opt/bitnami/scripts/start-scripts/start-replica.sh"},
			why:     "value replica.extraFlags",
		},
		{
			command: []string{"/bin/bash", "-ec"},
			args:    []string{"sleep 1\n/opt/bitnami/scripts/start-scripts/start-node.sh"},
			why:     "value replica.extraFlags",
		},
	} {
		source, why := optionSourceOf(&corev1.Container{Name: "redis", Command: tc.command, Args: tc.args, Image: tc.image})
		want := optionSource{Container: "redis"}
		switch tc.want {
		case arguments:
		case "":
			want = optionSource{}
		default:
			want.Variable = tc.want
		}
		if source != want || (why == "") != (tc.want != "") || !strings.Contains(why, tc.why) {
			t.Errorf("command %q, args %q, image %s: %+v, %q; want %s, %q", tc.command, tc.args, tc.image, source, why, tc.want,
				tc.why)
		}
	}
}

// A variable is as it was after the change and its reverse, and so is one that somebody reverts by the command for
// that.
func TestIOThreadsVariable(t *testing.T) {
	source := optionSource{"redis", "REDIS_EXTRA_FLAGS"}
	other := corev1.EnvVar{
		Name:      "POD",
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}},
	}
	last := corev1.EnvVar{Name: "REDIS_PORT", Value: "6379"}
	for _, tc := range []struct {
		name      string
		before    []corev1.EnvVar
		inherited bool
		want      string
	}{
		{"absent", []corev1.EnvVar{other, last}, false, "--io-threads 2"},
		{"no variable at all", nil, false, "--io-threads 2"},
		{"empty", []corev1.EnvVar{other, {Name: "REDIS_EXTRA_FLAGS"}, last}, false, "--io-threads 2"},
		{
			"a value",
			[]corev1.EnvVar{{Name: "REDIS_EXTRA_FLAGS", Value: "--hz $(HZ)"}, other, last},
			false,
			"--hz $(HZ) --io-threads 2",
		},
		{"from envFrom", []corev1.EnvVar{other}, true, "$(REDIS_EXTRA_FLAGS) --io-threads 2"},
	} {
		pod := &corev1.PodSpec{
			Containers: []corev1.Container{{Name: "metrics"}, {Name: "redis", Env: slices.Clone(tc.before)}},
		}
		container := &pod.Containers[1]
		before := source.of(pod)
		after := source.with(before, []string{"--io-threads", "2"}, tc.inherited)
		source.set(container, after)
		at := slices.IndexFunc(container.Env, source.named)
		if at < 0 || container.Env[at].Value != tc.want || !slices.Equal(source.of(pod), after) ||
			slices.Equal(before, after) {
			t.Errorf("%s: changed to %+v, read as %q", tc.name, container.Env, source.of(pod))
		}
		byHand := patched(t, pod, source.patch(before))
		source.set(container, before)
		for how, env := range map[string][]corev1.EnvVar{
			"reverted":       container.Env,
			"by the command": byHand.Containers[1].Env,
		} {
			if len(env)+len(tc.before) > 0 && !reflect.DeepEqual(env, tc.before) {
				t.Errorf("%s, %s: %+v, want %+v", tc.name, how, env, tc.before)
			}
		}
	}
}

// patched applies a patch of a container to a pod, as kubectl patch --type strategic does.
func patched(t *testing.T, pod *corev1.PodSpec, container map[string]any) *corev1.PodSpec {
	t.Helper()
	old, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(map[string]any{"containers": []any{container}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := strategicpatch.StrategicMergePatch(old, patch, corev1.PodSpec{})
	if err != nil {
		t.Fatal(err)
	}
	result := &corev1.PodSpec{}
	if err := json.Unmarshal(text, result); err != nil {
		t.Fatal(err)
	}
	return result
}

func TestIOThreadsFixedVariable(t *testing.T) {
	source := optionSource{"redis", "REDIS_EXTRA_FLAGS"}
	from := &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "flags"}}
	for _, tc := range []struct {
		env  []corev1.EnvVar
		want string // "" = it can be changed
	}{
		{nil, ""},
		{[]corev1.EnvVar{{Name: "REDIS_EXTRA_FLAGS", Value: "--hz 5"}, {Name: "REDIS_PASSWORD_FILE", Value: "/secret"}}, ""},
		{[]corev1.EnvVar{{Name: "REDIS_EXTRA_FLAGS", ValueFrom: from}}, "from elsewhere (valueFrom): add io-threads there"},
		{[]corev1.EnvVar{{Name: "REDIS_EXTRA_FLAGS_FILE", Value: "/flags"}}, "REDIS_EXTRA_FLAGS_FILE names"},
		{[]corev1.EnvVar{{Name: "REDIS_EXTRA_FLAGS"}, {Name: "REDIS_EXTRA_FLAGS"}}, "more than one variable"},
	} {
		if why := source.fixed(&corev1.Container{Env: tc.env}); (why == "") != (tc.want == "") ||
			!strings.Contains(why, tc.want) {
			t.Errorf("%+v: %q, want %q", tc.env, why, tc.want)
		}
	}
}

// The value of a variable that envFrom gives is kept, and not read.
func TestIOThreadsInheritedVariable(t *testing.T) {
	named := corev1.LocalObjectReference{Name: "flags"}
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "flags"},
		Data:       map[string]string{"REDIS_EXTRA_FLAGS": "--hz 5", "EXTRA_FLAGS": "--hz 5"},
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "flags"},
		Data:       map[string][]byte{"REDIS_EXTRA_FLAGS": []byte("--requirepass s3cret")},
	}
	missing := corev1.LocalObjectReference{Name: "missing"}
	for _, tc := range []struct {
		name string
		from []corev1.EnvFromSource
		want string
	}{
		{"nothing", nil, "--io-threads 2"},
		{
			"a ConfigMap",
			[]corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: missing}},
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named}},
			},
			"$(REDIS_EXTRA_FLAGS) --io-threads 2",
		},
		{
			"a prefix",
			[]corev1.EnvFromSource{{Prefix: "REDIS_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named}}},
			"$(REDIS_EXTRA_FLAGS) --io-threads 2",
		},
		{
			"another prefix",
			[]corev1.EnvFromSource{{Prefix: "CACHE_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named}}},
			"--io-threads 2",
		},
		{
			"a Secret",
			[]corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named}}},
			"$(REDIS_EXTRA_FLAGS) --io-threads 2",
		},
	} {
		w := faulttest.NewWorld(t, config.DeepCopy(), secret.DeepCopy())
		edit := &templateEdit{StatefulSet: "redis"}
		threads := newIOThreads(threadsFault(2, v1alpha1.ApplyRoll), w.Deps()).(ioThreads)
		if err := threads.plan(t.Context(), edit,
			&corev1.Container{Name: "redis", Image: "bitnami/redis:8.2", EnvFrom: tc.from},
			threads.arguments(true)); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if edit.Before != nil || !slices.Equal(edit.After, []string{tc.want}) {
			t.Errorf("%s: from %q to %q, want %q", tc.name, edit.Before, edit.After, tc.want)
		}
	}
}
