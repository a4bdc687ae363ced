package resp

import (
	"bytes"

	"github.com/redquake/redquake/internal/record"
)

// Classify returns the class of an error reply by its first word: "READONLY You can't write against
// a read only replica." Other prefixes than the known ones are ClassOther, including ERR and
// WRONGTYPE.
func Classify(message []byte) record.Class {
	word := message
	if i := bytes.IndexByte(message, ' '); i >= 0 {
		word = message[:i]
	}
	switch string(word) {
	case "READONLY":
		return record.ClassReadOnly
	case "NOREPLICAS":
		return record.ClassNoReplicas
	case "MOVED", "ASK", "TRYAGAIN", "CROSSSLOT":
		return record.ClassMoved
	case "CLUSTERDOWN":
		return record.ClassClusterDown
	case "LOADING":
		return record.ClassLoading
	case "MASTERDOWN":
		return record.ClassMasterDown
	case "NOAUTH", "WRONGPASS", "NOPERM":
		return record.ClassAuth
	case "OOM":
		return record.ClassOOM
	case "BUSY":
		return record.ClassBusy
	case "MISCONF":
		return record.ClassMisconf
	}
	return record.ClassOther
}
