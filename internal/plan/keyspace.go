package plan

import "time"

// Keyspace is the set of keys {prefix}0 .. {prefix}{Keys-1}.
type Keyspace struct {
	Prefix       string       `json:"prefix"`
	Keys         int64        `json:"keys"`
	Distribution Distribution `json:"distribution"`
	// SET every key before the start, at pipeline speed, split over the pods
	Prefill bool `json:"prefill,omitempty"`
	// of prefilled keys, and of {key} in plain SET commands (PX is appended); 0 = none
	TTL time.Duration `json:"ttl,omitempty"`
}

// Distribution is how keys are drawn.
type Distribution string

// The distributions.
const (
	Uniform  Distribution = "Uniform"
	Zipf     Distribution = "Zipf"     // exponent 1.1 over the key numbers: 0 is the hottest
	Gaussian Distribution = "Gaussian" // mean keys/2, standard deviation keys/6, cut at the ends
	// 0, 1, 2, ... per source, each source beginning at its share
	Sequential Distribution = "Sequential"
)

// Values is the size of {value}: fixed where MinBytes == MaxBytes, else drawn uniformly.
type Values struct {
	MinBytes int `json:"minBytes"`
	MaxBytes int `json:"maxBytes"`
}
