//go:build unix

package broker

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// ownerAdvice says what to do about a folder that this process may not use: whose
// it is, and whose the process.
func ownerAdvice(dir string) string {
	info, err := os.Stat(dir)
	if err != nil {
		return otherFolder
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) == os.Geteuid() {
		return "let its owner write to it and all that is in it, or " + otherFolder
	}
	owner, self := userName(int(st.Uid)), userName(os.Geteuid())
	return fmt.Sprintf("it belongs to %s, the broker runs as %s: run it as %s, give the folder away with chown -R %s %s, or %s", owner, self, owner, self, dir, otherFolder)
}

// userName is the name of a user, or the number if it has none.
func userName(id int) string {
	number := strconv.Itoa(id)
	if u, err := user.LookupId(number); err == nil {
		return u.Username
	}
	return number
}
