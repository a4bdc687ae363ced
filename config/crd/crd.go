// Package crd embeds the CustomResourceDefinitions, so that a program reads objects by the
// definitions of its own version.
package crd

import "embed"

// Bases holds the CRDs as `make manifests` writes them: bases/*.yaml.
//
//go:embed bases/*.yaml
var Bases embed.FS
