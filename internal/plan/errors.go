package plan

// Reason is why a run failed, as one CamelCase word for conditions. It names the cause that the
// user has to check.
type Reason string

// The reasons.
const (
	// no server answers, or none serves yet: it loads its data, an election is under way
	TargetUnreachable Reason = "TargetUnreachable"
	// wrong password or user, or a password is needed
	AuthenticationFailed Reason = "AuthenticationFailed"
	// the ACL user may not run a command of the workload
	PermissionDenied Reason = "PermissionDenied"
	// this process may not open as many files as it needs, connections among them: no limit of Redis
	ProcessLimit Reason = "ProcessLimit"
	// Redis runs in protected mode and takes no connections from elsewhere
	ProtectedMode Reason = "ProtectedMode"
	// handshake or certificate; plain server and TLS client, or the reverse
	TLSFailed Reason = "TLSFailed"
	NotRedis  Reason = "NotRedis" // the server does not use RESP
	// Redis rejects a command of the workload: unknown, or wrong number of arguments
	CommandInvalid Reason = "CommandInvalid"
	// the keyspace could not be written before the start, e.g. out of memory
	PrefillFailed Reason = "PrefillFailed"
	// the ledger of acknowledged writes could not be prepared
	LedgerFailed Reason = "LedgerFailed"
	// the database or the API of the workload cannot be used
	BackendUnreachable Reason = "BackendUnreachable"
	// the adapter of a client library cannot be used, or has failed
	AdapterFailed Reason = "AdapterFailed"
	PlanInvalid   Reason = "PlanInvalid" // the plan is inconsistent or incomplete
)

// Error is why a run failed. Message is human-readable and contains the address or the field.
type Error struct {
	Reason  Reason
	Message string
	Err     error
	// Passes reports whether waiting can help: the same may succeed later without a change of what the
	// user has configured.
	Passes bool
}

func (e *Error) Error() string {
	return string(e.Reason) + ": " + e.Message
}

func (e *Error) Unwrap() error {
	return e.Err
}
