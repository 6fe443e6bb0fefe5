//go:build !unix

package broker

import (
	"errors"
	"net"
)

// setBacklog sets how many connections may wait to be accepted.
func setBacklog(net.Listener, int) error {
	return errors.New("tcp_listen_options.backlog cannot be set on this system: remove the line")
}

// openFilesLimit is how many files and sockets the process may have open; not
// ok if there is no such limit.
func openFilesLimit() (n uint64, ok bool) { return 0, false }
