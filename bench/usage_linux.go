package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ticksPerSecond is the unit of processor times in /proc (proc(5), USER_HZ).
const ticksPerSecond = 100

// ProcessTree lists a process and those it has started, which for RabbitMQ is
// where the work is done.
func ProcessTree(pid int) ([]int, error) {
	if _, _, err := readStat(pid); err != nil {
		return nil, fmt.Errorf("broker-pid: there is no process %d", pid)
	}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, f := range files {
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil {
			continue
		}
		if parent, _, err := readStat(id); err == nil { // else it has just ended
			children[parent] = append(children[parent], id)
		}
	}
	tree := []int{pid}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i]]...)
	}
	return tree, nil
}

// readUsage adds up the processes; one that has ended counts nothing.
func readUsage(pids []int) usage {
	u := usage{known: len(pids) > 0}
	for _, pid := range pids {
		_, fields, err := readStat(pid)
		if err != nil {
			continue
		}
		u.cpu += time.Duration(fields[0]+fields[1]) * time.Second / ticksPerSecond
		u.rss += fields[2] * int64(os.Getpagesize())
	}
	return u
}

// readStat reads the parent of a process, and its user time, system time and
// resident pages.
func readStat(pid int) (parent int, fields [3]int64, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fields, err
	}
	text := string(data)
	f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // the name may have spaces
	if len(f) < 22 {
		return 0, fields, fmt.Errorf("/proc/%d/stat is cut short", pid)
	}
	for i, place := range []int{11, 12, 21} {
		if fields[i], err = strconv.ParseInt(f[place], 10, 64); err != nil {
			return 0, fields, err
		}
	}
	parent, err = strconv.Atoi(f[1])
	return parent, fields, err
}

// selfCPU is the processor time of this program.
func selfCPU() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// pause waits a short time more exactly than a timer, which on Linux is up to a
// millisecond late in a program that is idle.
func pause(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // woken early by a signal, the caller looks at the clock again
}
