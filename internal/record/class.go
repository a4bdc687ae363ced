package record

// Class is the kind of an error, as a client sees it. The order is part of the encoding: append only.
type Class uint8

// The classes of design: what broke the request, never what the client library called it.
const (
	ClassTimeout     Class = iota // sent, no reply within requestTimeout
	ClassRefused                  // the connection could not be made: refused, unreachable, dial timed out, name not found
	ClassReset                    // the connection broke under the request: reset, EOF, broken pipe
	ClassReadOnly                 // -READONLY, -NOREPLICAS
	ClassMoved                    // -MOVED, -ASK, -TRYAGAIN, -CROSSSLOT left unresolved
	ClassClusterDown              // -CLUSTERDOWN
	ClassLoading                  // -LOADING
	ClassMasterDown               // -MASTERDOWN
	ClassAuth                     // -NOAUTH, -WRONGPASS, -NOPERM
	ClassOOM                      // -OOM
	ClassBusy                     // -BUSY
	ClassMisconf                  // -MISCONF
	ClassProtocol                 // not a RESP reply
	ClassOther                    // any other error reply
	NumClasses       = iota
)

var classNames = [NumClasses]string{
	"timeout", "refused", "reset", "readonly", "moved", "clusterdown", "loading",
	"masterdown", "auth", "oom", "busy", "misconf", "protocol", "other",
}

// String returns the class's name in lower case, as reports and metrics label it.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "other"
}
