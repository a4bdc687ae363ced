// Package engine generates the load: it sends a plan's requests to Redis and records the outcome of each, interval by interval.
//
// # Structure
//
// A plan defines the requests, their rate and the duration. New validates it and computes one pod's share. Prepare discovers the topology of the
// deployment, connects, runs each command once, prefills, and establishes the connections. Run waits until T, generates the load, and delivers one
// record.Interval after the other.
//
//   - A loop serves an equal part of the connections, and of the users or arrivals, from one goroutine with epoll (poller). Its demand
//     (closedLoop, openLoop) determines when requests are due; the workload's source encodes them; routing selects the pool of connections; a conn
//     writes as many requests at once as may be in flight, scans the replies (resp.Scanner) and settles each request as ok, fail or
//     unknown. A loop allocates nothing and takes no lock per request.
//   - closedLoop keeps virtual users in a heap by due time; the number of active users follows the schedule (ramp-up, stages).
//   - openLoop takes arrivals from a pure pacer, which schedules all due times in advance.
//   - dialer reconnects broken connections: immediately, with a short backoff, and with hedged attempts while others hang.
//   - recorder holds counts and histograms of the open interval and the next one, in stripes; gapLog records periods without a success.
//   - prober sends a low-rate open-loop stream in parallel with the load, over separate connections; observer reads INFO.
//   - Run's goroutine closes intervals shortly after their end and calls the sink.
//
// runState is the state that these share; Runner owns them. All instants are nanoseconds since T on the monotonic clock.
package engine
