package node

import (
	"bufio"
	"errors"
	"fmt"
	"log"
	"net"
	"strings"
	"time"
)

// Orders that a node's PID 1 takes, one per connection: "VERB DAEMON". It answers "ok" or "error:
// ...", for Status one line per daemon first. It signals only its own children, so no pid ever
// leaves the node.
const (
	Hold    = "hold"
	Release = "release"
	Pause   = "pause"
	Resume  = "resume"
	Status  = "status"
)

// serve answers orders for ever.
func serve(listener net.Listener, daemons []*supervised) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			log.Printf("taking orders: %v", err)
			time.Sleep(time.Second)
			continue
		}
		go func() {
			defer conn.Close()
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err != nil {
				return
			}
			reply, err := obey(strings.Fields(line), daemons)
			if err != nil {
				fmt.Fprintf(conn, "error: %v\n", err)
				return
			}
			fmt.Fprintf(conn, "%sok\n", reply)
		}()
	}
}

func obey(order []string, daemons []*supervised) (string, error) {
	if len(order) == 1 && order[0] == Status {
		var b strings.Builder
		for _, d := range daemons {
			fmt.Fprintf(&b, "%s %s\n", d.name, d.state())
		}
		return b.String(), nil
	}
	if len(order) != 2 {
		return "", fmt.Errorf("order %q is not VERB DAEMON", order)
	}
	var names []string
	for _, d := range daemons {
		names = append(names, d.name)
		if d.name != order[1] {
			continue
		}
		switch order[0] {
		case Hold:
			return "", d.hold()
		case Release:
			return "", d.release()
		case Pause:
			return "", d.pause(true)
		case Resume:
			return "", d.pause(false)
		}
		return "", fmt.Errorf("unknown order %q", order[0])
	}
	return "", fmt.Errorf("no daemon is called %q; a node's daemons are %s", order[1],
		strings.Join(names, ", "))
}

// send gives one order to the PID 1 that listens at socket and returns the lines before its "ok".
func send(socket string, order ...string) ([]string, error) {
	conn, err := net.DialTimeout("unix", socket, 2*time.Second)
	if err != nil {
		return nil, fmt.Errorf("the node does not take orders: %w", err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := fmt.Fprintln(conn, strings.Join(order, " ")); err != nil {
		return nil, err
	}
	var lines []string
	scanner := bufio.NewScanner(conn)
	for scanner.Scan() {
		line := scanner.Text()
		if problem, ok := strings.CutPrefix(line, "error: "); ok {
			return nil, errors.New(problem)
		}
		if line == "ok" {
			return lines, nil
		}
		lines = append(lines, line)
	}
	return nil, errors.New("the node broke off its answer")
}
