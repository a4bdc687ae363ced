package config

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// optionSource is the part of a container's template through which its server gets further options.
type optionSource struct {
	Container string `json:"container"`
	// of its environment, from which a start script takes options; "" = the container's arguments
	Variable string `json:"variable,omitempty"`
}

// Bitnami's images start the server by run.sh, which gives it $REDIS_EXTRA_FLAGS (VALKEY_ for
// Valkey), split at white space, and then its own arguments. Read in bitnami/containers,
// rootfs/opt/bitnami/scripts: run.sh of redis 7.2, redis-cluster 8.10 and valkey 8.0, redis-env.sh
// of 8.10, valkey-env.sh of 9.1.
// REDIS_IO_THREADS is not used: libredis.sh (8.10) ignores it where a redis.conf is mounted, and
// includes overrides.conf after it.
//
// docker-entrypoint.sh of the image valkey/valkey appends $VALKEY_EXTRA_FLAGS, too, from 8.0 on
// (valkey-io/valkey-container).
//
// Of bitnami/charts, redis-cluster 13.0 calls run.sh from a shell; redis 23.1 and valkey 4.0 mount
// scripts that execute the server without run.sh, and to which only values of the chart add options
// (templates/scripts-configmap.yaml).
var (
	bitnamiRun = regexp.MustCompile(`/opt/bitnami/scripts/(?:redis|valkey)(?:-cluster)?/run\.sh`)
	flagsImage = regexp.MustCompile(
		`(?:^|/)(?:bitnami(?:legacy|secure)?/(?:redis|valkey)(?:-cluster)?|valkey/valkey)(?:[:@]|$)`)
	bitnamiChart = regexp.MustCompile(
		`/opt/bitnami/scripts/start-scripts/(start-(?:master|primary|replica|node)\.sh)`)
	bitnamiValues = map[string]string{
		"start-master.sh":  "master.extraFlags",
		"start-primary.sh": "primary.extraFlags",
		"start-replica.sh": "replica.extraFlags",
		"start-node.sh":    "replica.extraFlags",
	}
)

// optionSourceOf returns by what the server of a container gets options, or else why by nothing,
// and what to do.
func optionSourceOf(container *corev1.Container) (source optionSource, why string) {
	words := slices.Concat(container.Command, container.Args)
	server := slices.IndexFunc(words, startsServer)
	script := slices.IndexFunc(words, isScriptOption)
	arguments := optionSource{Container: container.Name}
	switch {
	case server >= 0 && (script < 0 || script > server):
		return arguments, ""
	case len(words) == 0:
		image := flagsImage.FindString(container.Image)
		if image != "" {
			return optionSource{container.Name, variableOf(image)}, ""
		}
		return optionSource{},
			"has neither command nor args: those of its image are not known, and arguments would replace " +
				"them. Let its command or args begin with redis-server"
	case len(container.Command) == 0 && server < 0 &&
		(strings.HasPrefix(words[0], "--") || strings.HasSuffix(words[0], ".conf")):
		return arguments, "" // the entrypoints of Redis's and Valkey's images put the server before such
	}
	text := strings.Join(words, " ")
	chart := bitnamiChart.FindStringSubmatch(text)
	if chart != nil {
		return optionSource{}, fmt.Sprintf(
			"runs %s of Bitnami's chart, which passes no variable on to the server. Add io-threads to the "+
				"chart's value %s", chart[1], bitnamiValues[chart[1]])
	}
	if run := bitnamiRun.FindString(text); run != "" {
		return optionSource{container.Name, variableOf(run)}, ""
	}
	return optionSource{},
		"runs a script, to whose server no arguments can be added. Let its command or args begin with redis-server"
}

// startsServer reports whether a word is a program that takes the arguments after it for the
// server.
func startsServer(word string) bool {
	name := path.Base(word)
	return name == "redis-server" || name == "valkey-server" ||
		bitnamiRun.FindString(word) == word && word != ""
}

// isScriptOption reports whether a word is the option of a shell before a script: -c, -ec.
func isScriptOption(word string) bool {
	return len(word) > 1 && word[0] == '-' && word[1] != '-' && word[len(word)-1] == 'c'
}

// variableOf is the variable that an image or a script takes options from.
func variableOf(name string) string {
	if strings.Contains(name, "valkey") {
		return "VALKEY_EXTRA_FLAGS"
	}
	return "REDIS_EXTRA_FLAGS"
}

func (o optionSource) String() string {
	if o.Variable != "" {
		return fmt.Sprintf("variable %s of container %s", o.Variable, o.Container)
	}
	return fmt.Sprintf("command line (args) of container %s", o.Container)
}

// of returns the arguments of the container, or as the only element the value of the variable: none
// where the container does not have it.
func (o optionSource) of(pod *corev1.PodSpec) []string {
	container := containerIn(pod, o.Container)
	switch {
	case container == nil:
		return nil
	case o.Variable == "":
		return container.Args
	}
	at := slices.IndexFunc(container.Env, o.named)
	if at < 0 {
		return nil
	}
	return []string{container.Env[at].Value}
}

// set is the reverse of of.
func (o optionSource) set(container *corev1.Container, words []string) {
	if o.Variable == "" {
		container.Args = words
		return
	}
	at := slices.IndexFunc(container.Env, o.named)
	switch {
	case len(words) == 0:
		container.Env = slices.DeleteFunc(container.Env, o.named)
	case at < 0:
		container.Env = append(container.Env, corev1.EnvVar{Name: o.Variable, Value: words[0]})
	default:
		container.Env[at] = corev1.EnvVar{Name: o.Variable, Value: words[0]}
	}
}

func (o optionSource) named(variable corev1.EnvVar) bool {
	return variable.Name == o.Variable
}

// patch is the part of a strategic merge patch of the container that sets the words.
func (o optionSource) patch(words []string) map[string]any {
	patch := map[string]any{"name": o.Container}
	switch {
	case o.Variable == "":
		patch["args"] = words
	case len(words) == 0:
		patch["env"] = []any{map[string]string{"name": o.Variable, "$patch": "delete"}}
	default:
		patch["env"] = []any{map[string]string{"name": o.Variable, "value": words[0]}}
	}
	return patch
}

// with are the words with options added. inherited says that the variable comes from envFrom, to
// whose value that of the container may refer.
func (o optionSource) with(words, options []string, inherited bool) []string {
	if o.Variable == "" {
		return slices.Concat(words, options)
	}
	if inherited {
		words = []string{"$(" + o.Variable + ")"}
	}
	return []string{strings.TrimSpace(strings.Join(slices.Concat(words, options), " "))}
}

// options are the options of the server among the words.
func (o optionSource) options(words []string) []string {
	if o.Variable == "" {
		return words
	}
	return strings.Fields(strings.Join(words, " "))
}

// fixed returns why nothing can be added to the variable; "" where something can.
func (o optionSource) fixed(container *corev1.Container) string {
	count := 0
	for _, variable := range container.Env {
		switch {
		case variable.Name == o.Variable+"_FILE":
			return fmt.Sprintf("takes %s from a file, which %s names: add io-threads there", o.Variable,
				variable.Name)
		case !o.named(variable):
			continue
		case variable.ValueFrom != nil:
			return fmt.Sprintf("takes %s from elsewhere (valueFrom): add io-threads there", o.Variable)
		}
		if count++; count > 1 {
			return fmt.Sprintf("has more than one variable %s: leave one", o.Variable)
		}
	}
	return ""
}

// inherits reports whether envFrom gives the container a variable.
func (t ioThreads) inherits(
	ctx context.Context, container *corev1.Container, name string,
) (bool, error) {
	for _, from := range container.EnvFrom {
		key, prefixed := strings.CutPrefix(name, from.Prefix)
		if !prefixed {
			continue
		}
		found, err := false, error(nil)
		switch {
		case from.ConfigMapRef != nil:
			source := &corev1.ConfigMap{}
			err = t.Live.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: from.ConfigMapRef.Name},
				source)
			_, found = source.Data[key]
		case from.SecretRef != nil:
			source := &corev1.Secret{}
			err = t.Live.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: from.SecretRef.Name},
				source)
			_, found = source.Data[key]
		}
		if found || client.IgnoreNotFound(err) != nil {
			return found, err
		}
	}
	return false, nil
}
