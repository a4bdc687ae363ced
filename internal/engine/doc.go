// Package engine generates the load: it sends a plan's requests to Redis and records the outcome of
// each, interval by interval.
//
// # Structure
//
// A plan defines the requests, their rate and the duration. New validates it and computes one pod's
// share. Prepare discovers the topology of the deployment, connects, runs each command once,
// prefills, and establishes the connections. Run waits until T, generates the load, and delivers
// one record.Interval after the other.
//
//   - A loop.Loop serves an equal part of the connections, and of the users or arrivals, from one
//     goroutine with epoll (socket). Its demand determines
//     when requests are due, by pace; the workload's source encodes them; it selects the pool of
//     connections, by route; a loop.Conn writes as many
//     requests at once as may be in flight, scans the replies (resp.Scanner) and settles each
//     request as ok, fail or unknown.
//   - callers.Callers replace the loops for workloads that perform whole operations: a goroutine
//     for each at a time.
//   - pace keeps virtual users in a heap by due time, whose number follows the schedule (ramp-up,
//     stages), and a pacer, which schedules the due times of all
//     arrivals in advance.
//   - dial reconnects broken connections: immediately, with a short backoff, and with hedged
//     attempts while others hang.
//   - interval holds counts and histograms of the open interval and the next one, in stripes; gaps
//     logs periods without a success.
//   - probe sends a low-rate open-loop stream in parallel with the load, over separate connections;
//     observer reads INFO.
//   - Run's goroutine closes intervals shortly after their end and calls the sink.
//
// load.State is the state that these share; Runner owns them. All instants are nanoseconds since T
// on the monotonic clock.
//
// The packages import one another in one direction only, to the right:
//
//	engine -> {loop, callers, probe} -> load -> {pace, gaps, interval, route -> dial} -> socket -> clock
//	engine -> observer -> route
package engine
