package resp

import (
	"bytes"

	"github.com/redquake/redquake/internal/sample"
)

// Classify names the kind of an error reply by its first word, as Redis writes it: "READONLY You can't write against a read only replica."
// Words that are none of Redis' known prefixes are ClassOther, ERR and WRONGTYPE among them.
func Classify(message []byte) sample.Class {
	word := message
	if i := bytes.IndexByte(message, ' '); i >= 0 {
		word = message[:i]
	}
	switch string(word) {
	case "READONLY", "NOREPLICAS":
		return sample.ClassReadOnly
	case "MOVED", "ASK", "TRYAGAIN", "CROSSSLOT":
		return sample.ClassMoved
	case "CLUSTERDOWN":
		return sample.ClassClusterDown
	case "LOADING":
		return sample.ClassLoading
	case "MASTERDOWN":
		return sample.ClassMasterDown
	case "NOAUTH", "WRONGPASS", "NOPERM":
		return sample.ClassAuth
	case "OOM":
		return sample.ClassOOM
	case "BUSY":
		return sample.ClassBusy
	case "MISCONF":
		return sample.ClassMisconf
	}
	return sample.ClassOther
}
