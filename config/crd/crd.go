// Package crd embeds the CustomResourceDefinitions, so that a program reads objects by the
// definitions of its own version.
package crd

import "embed"

// Bases holds the CRDs as `make manifests` writes them: bases/*.yaml.
//
//go:embed bases/*.yaml
var Bases embed.FS

// Schemas holds the schemas of the CRDs by version, without descriptions, as `make manifests` writes
// them: schemas/*.json. A program reads them in a fifth of the time that the YAML takes.
//
//go:embed schemas/*.json
var Schemas embed.FS
