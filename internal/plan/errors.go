package plan

// Reason says in one CamelCase word why a run cannot go on, for conditions: it names what the user has to look at.
type Reason string

// The reasons.
const (
	TargetUnreachable    Reason = "TargetUnreachable"    // nothing answers there within the dial budget
	AuthenticationFailed Reason = "AuthenticationFailed" // wrong password or user, or a password is needed
	PermissionDenied     Reason = "PermissionDenied"     // the ACL user may not run a command of the workload
	TLSFailed            Reason = "TLSFailed"            // handshake or certificate; plain server and TLS client, or the reverse
	NotRedis             Reason = "NotRedis"             // something answers, but not in RESP
	CommandInvalid       Reason = "CommandInvalid"       // Redis refuses a command of the workload: unknown, or wrong number of arguments
	PrefillFailed        Reason = "PrefillFailed"        // the keyspace could not be written before the start, e.g. out of memory
	LedgerFailed         Reason = "LedgerFailed"         // the ledger of acknowledged writes could not be prepared
	BackendUnreachable   Reason = "BackendUnreachable"   // the database or the API of the workload cannot be used
	PlanInvalid          Reason = "PlanInvalid"          // the plan contradicts itself or lacks something
)

// Error is why a run cannot go on. Message is a sentence for people with the address or the field in it.
type Error struct {
	Reason  Reason
	Message string
	Err     error
}

func (e *Error) Error() string { return string(e.Reason) + ": " + e.Message }

func (e *Error) Unwrap() error { return e.Err }
