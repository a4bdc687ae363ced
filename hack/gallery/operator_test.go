package main

import (
	"os"
	"regexp"
	"testing"
)

// What the lab builds is the version that the manifests and the download of its CRD name.
func TestVersionOfTheRedisOperator(t *testing.T) {
	t.Parallel()
	versions := map[string]string{} // file to version
	for file, pattern := range map[string]string{
		"../redisoperator/go.mod":                                      `spotahome/redis-operator (v\S+)`,
		"../../config/gallery/bases/redis-operator/operator.yaml":      `spotahome/redis-operator:(v\S+)`,
		"../../config/gallery/bases/redis-operator/kustomization.yaml": `spotahome/redis-operator/(v[^/]+)/`,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		match := regexp.MustCompile(pattern).FindSubmatch(text)
		if match == nil {
			t.Fatalf("%s names no version", file)
		}
		versions[file] = string(match[1])
	}
	built := versions["../redisoperator/go.mod"]
	for file, version := range versions {
		if version != built {
			t.Errorf("%s has %s, hack/redisoperator builds %s", file, version, built)
		}
	}
}
