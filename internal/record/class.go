package record

// Class is the kind of an error, from the client's perspective. The order is part of the encoding:
// only append.
type Class uint8

// The error classes: what made the request fail, independently of the client library's error.
const (
	ClassTimeout Class = iota // sent, no reply within requestTimeout
	// the connection could not be made: refused, unreachable, dial timed out, name not found
	ClassRefused
	// the connection broke while the request was in flight: reset, EOF, broken pipe
	ClassReset
	ClassReadOnly    // -READONLY
	ClassMoved       // -MOVED, -ASK, -TRYAGAIN, -CROSSSLOT that could not be followed
	ClassClusterDown // -CLUSTERDOWN
	ClassLoading     // -LOADING
	ClassMasterDown  // -MASTERDOWN
	ClassAuth        // -NOAUTH, -WRONGPASS, -NOPERM
	ClassOOM         // -OOM
	ClassBusy        // -BUSY
	ClassMisconf     // -MISCONF
	ClassProtocol    // not a RESP reply
	ClassOther       // any other error reply
	ClassNoReplicas  // -NOREPLICAS
	NumClasses       = iota
)

var classNames = [NumClasses]string{
	"timeout", "refused", "reset", "readonly", "moved", "clusterdown", "loading",
	"masterdown", "auth", "oom", "busy", "misconf", "protocol", "other", "noreplicas",
}

// String returns the class's name in lower case, as reports and metrics label it.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "other"
}
