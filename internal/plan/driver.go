package plan

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
)

// Driver is the client that sends the requests: Native, or a library that applications use.
type Driver string

// The drivers.
const (
	NativeDriver             Driver = "Native" // Redquake's own: no retries, cheap
	GoRedisDriver            Driver = "GoRedis"
	RueidisDriver            Driver = "Rueidis"
	RedisPyDriver            Driver = "RedisPy"
	RedisPyAsyncDriver       Driver = "RedisPyAsync"
	GlidePythonDriver        Driver = "GlidePython"
	NodeRedisDriver          Driver = "NodeRedis"
	IORedisDriver            Driver = "IORedis"
	GlideNodeDriver          Driver = "GlideNode"
	LettuceDriver            Driver = "Lettuce"
	JedisDriver              Driver = "Jedis"
	GlideJavaDriver          Driver = "GlideJava"
	RedisRsDriver            Driver = "RedisRs"
	RedisRsMultiplexedDriver Driver = "RedisRsMultiplexed"
)

// Language is the language of a library.
type Language string

// The languages.
const (
	Go     Language = "go" // runs in the process of the load generator
	Python Language = "python"
	Node   Language = "node"
	Java   Language = "java"
	Rust   Language = "rust"
)

var languages = map[Driver]Language{
	GoRedisDriver:            Go,
	RueidisDriver:            Go,
	RedisPyDriver:            Python,
	RedisPyAsyncDriver:       Python,
	GlidePythonDriver:        Python,
	NodeRedisDriver:          Node,
	IORedisDriver:            Node,
	GlideNodeDriver:          Node,
	LettuceDriver:            Java,
	JedisDriver:              Java,
	GlideJavaDriver:          Java,
	RedisRsDriver:            Rust,
	RedisRsMultiplexedDriver: Rust,
}

// Drivers returns all drivers, Native first.
func Drivers() []Driver {
	return append([]Driver{NativeDriver}, slices.Sorted(maps.Keys(languages))...)
}

// IsLibrary reports whether the driver is a library that applications use. "" is Native.
func (d Driver) IsLibrary() bool {
	return d.Language() != ""
}

// Language is the language of the driver's library; "" if it is none.
func (d Driver) Language() Language {
	return languages[d]
}

// threads is how many threads an adapter has at most whose library blocks the caller.
const threads = 200

// InFlight is how many requests the driver has in flight at a time at most.
func (d Driver) InFlight() int {
	if d == RedisPyDriver || d == JedisDriver {
		return threads
	}
	return math.MaxInt
}

// Adapter is where the adapter of a library is that is not in Go: see clients/PROTOCOL.md.
type Adapter struct {
	// a program that the load generator starts, with its arguments; empty if it runs already
	Command []string `json:"command,omitempty"`
	// the socket to which a program connects that somebody else starts
	Socket string `json:"socket,omitempty"`
}

// Options are options of a library, by its own names. Values are what JSON has; numbers are int64
// if they can be, otherwise float64.
type Options map[string]any

// UnmarshalJSON is a part of json.Unmarshaler.
func (o *Options) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var all map[string]any
	if err := d.Decode(&all); err != nil {
		return err
	}
	for name, value := range all {
		all[name] = withNumbers(value)
	}
	*o = all
	return nil
}

// Set sets an option that is given as NAME=VALUE, or as OBJECT.NAME=VALUE in an object. The value is
// what JSON makes of it, or else the text itself. It returns false if it is given otherwise.
func (o Options) Set(given string) bool {
	name, text, ok := strings.Cut(given, "=")
	path := strings.Split(name, ".")
	if !ok || slices.Contains(path, "") {
		return false
	}
	var value any = text
	if json.Valid([]byte(text)) {
		value = json.RawMessage(text)
	}
	inside, last := map[string]any(o), len(path)-1
	for _, object := range path[:last] {
		if inside[object] == nil {
			inside[object] = map[string]any{}
		}
		if inside, ok = inside[object].(map[string]any); !ok {
			return false
		}
	}
	inside[path[last]] = value
	return true
}

// maxOptions is how many bytes of JSON options may have.
const maxOptions = 16 << 10

func (o Options) size() int {
	text, _ := json.Marshal(o)
	return len(text)
}

func withNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case map[string]any:
		for name := range v {
			v[name] = withNumbers(v[name])
		}
	case []any:
		for i := range v {
			v[i] = withNumbers(v[i])
		}
	}
	return value
}
