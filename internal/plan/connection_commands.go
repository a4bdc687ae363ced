package plan

import (
	"fmt"
	"slices"
	"strings"
)

// connectionCommands are the commands that change the connection that they are sent over, and what to
// do instead. Requests of all kinds share a connection: those after MULTI are answered by QUEUED and
// not carried out, those after SELECT go to another database.
var connectionCommands = func() map[string]string {
	const (
		together = "to execute several commands as one, use a script (EVAL)"
		listens  = "the load does not receive messages"
		ours     = "the load generator does that itself"
	)
	known := map[string]string{}
	for _, group := range []struct{ names, instead string }{
		{"MULTI EXEC DISCARD WATCH UNWATCH", together},
		{"SUBSCRIBE PSUBSCRIBE SSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE SUNSUBSCRIBE MONITOR", listens},
		{"SELECT", "set spec.target.database (--database)"},
		{"HELLO", "set spec.client.protocol (--resp2)"},
		{"AUTH", "set spec.target.auth (--username, --password-file)"},
		{"READONLY READWRITE", "set spec.client.readFrom (--read-from)"},
		{"ASKING QUIT RESET", ours},
		{"CLIENT|REPLY CLIENT|TRACKING CLIENT|CACHING CLIENT|SETNAME CLIENT|SETINFO CLIENT|NO-EVICT " +
			"CLIENT|NO-TOUCH CLIENT|CAPA CLIENT|IMPORT-SOURCE", ours},
		{"SYNC PSYNC REPLCONF", "that is for replicas"},
	} {
		for name := range strings.FieldsSeq(group.names) {
			known[name] = group.instead
		}
	}
	return known
}()

// ConnectionCommands are the names of the commands that change their connection, sorted: "MULTI",
// "CLIENT REPLY".
func ConnectionCommands() []string {
	var names []string
	for name := range connectionCommands {
		names = append(names, strings.ReplaceAll(name, "|", " "))
	}
	slices.Sort(names)
	return names
}

// connectionProblem returns why a command is refused that changes its connection; "" = it does not.
func connectionProblem(words []string) string {
	name := strings.ToUpper(words[0])
	instead, ok := connectionCommands[name]
	if !ok && len(words) > 1 {
		name += "|" + strings.ToUpper(words[1])
		instead, ok = connectionCommands[name]
	}
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s changes the connection that it is sent over, which requests of all operations "+
		"share: %s", strings.ReplaceAll(name, "|", " "), instead)
}
