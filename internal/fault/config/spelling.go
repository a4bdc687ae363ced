package config

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// sameValue reports whether two texts are the same value of a setting to a server, which accepts
// several spellings of a value and shows one of them: 100mb is shown as 104857600, KEA as AKE,
// "normal 1mb 0 0" with the limits of the other classes of clients. asked is what CONFIG SET was
// given, shown what CONFIG GET returns.
func sameValue(name, asked, shown string) bool {
	if asked == shown {
		return true
	}
	switch name {
	case "client-output-buffer-limit":
		return withinLimits(asked, shown)
	case "notify-keyspace-events":
		return slices.Equal(eventClasses(asked), eventClasses(shown))
	}
	if n, given := withinBounds(name, asked); given {
		m, is := withinBounds(name, shown)
		return is && n == m
	}
	a, b := spellings(asked), spellings(shown)
	if strings.HasPrefix(name, "shutdown-on-") { // flags, in any order
		slices.Sort(a)
		slices.Sort(b)
	}
	return slices.Equal(a, b)
}

// spellings are the words of a value, each in one spelling.
func spellings(value string) []string {
	found := strings.Fields(strings.ToLower(value))
	for i, word := range found {
		found[i] = plainWord(word)
	}
	return found
}

// plainWord is the spelling of a word in lower case that a server shows, as far as it does not
// depend on the setting.
func plainWord(word string) string {
	if bytes, ok := memorySize(word); ok {
		return strconv.FormatUint(bytes, 10)
	}
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return strconv.FormatInt(n, 10)
	}
	if x, err := strconv.ParseFloat(word, 64); err == nil {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	if word == "relative" { // of oom-score-adj, which shows it as yes
		return "yes"
	}
	return word
}

// withinLimits reports whether limits of classes of clients, four words each, are among those that
// a server shows: of all classes.
func withinLimits(asked, shown string) bool {
	all := bufferLimits(shown)
	for class, limit := range bufferLimits(asked) {
		if !slices.Equal(all[class], limit) {
			return false
		}
	}
	return true
}

func bufferLimits(value string) map[string][]string {
	limits := map[string][]string{}
	for limit := range slices.Chunk(spellings(value), 4) {
		class := limit[0]
		if class == "replica" {
			class = "slave"
		}
		limits[class] = limit[1:]
	}
	return limits
}

// eventClasses are the letters of notify-keyspace-events in order. A stands for many of them; a
// server does not show n beside it.
func eventClasses(value string) []byte {
	const all = "$deghlstxz"
	letters := []byte(strings.ReplaceAll(value, "A", all))
	slices.Sort(letters)
	letters = slices.Compact(letters)
	if without := slices.DeleteFunc(slices.Clone(letters), func(letter byte) bool {
		return !strings.ContainsRune(all, rune(letter))
	}); string(without) == all {
		letters = slices.DeleteFunc(letters, func(letter byte) bool { return letter == 'n' })
	}
	return letters
}

// bounds are those of settings of which a server takes any number, and uses and shows the nearest
// one within them.
var bounds = map[string]struct{ least, most uint64 }{
	"hz":                {1, 500},
	"repl-backlog-size": {16 << 10, math.MaxUint64},
}

// withinBounds is the number that a server uses; bounded is false for other settings, and for what
// is no number.
func withinBounds(name, value string) (n uint64, bounded bool) {
	of, known := bounds[name]
	n, is := memorySize(value)
	return min(max(n, of.least), of.most), known && is
}
