package config

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

const (
	// memoryShare is the part of the memory at hand, in percent, that the
	// broker may take. RabbitMQ 4.0: vm_memory_high_watermark.relative = 0.6.
	memoryShare = 60
	// unknownMemory is taken as the machine's memory where the system does not
	// tell, in bytes.
	unknownMemory = 2 << 30
)

// AvailableMemory is what this process can have, in bytes: the machine's memory
// or its control group's limit, whichever is less.
func AvailableMemory() int64 { return availableMemory(os.DirFS("/")) }

// availableMemory reads Linux's files below root, which is "/" but in tests.
func availableMemory(root fs.FS) int64 {
	total := machineMemory(root)
	if limit := cgroupLimit(root); limit > 0 && (total == 0 || limit < total) {
		total = limit
	}
	if total == 0 {
		return unknownMemory
	}
	return total
}

// machineMemory is the memory of the machine in bytes, 0 if unknown.
func machineMemory(root fs.FS) int64 {
	b, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil { // not Linux
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] != "MemTotal:" {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return 0
		}
		return kib << 10
	}
	return 0
}

// cgroupLimit is the least memory limit of the control groups this process is
// in, in bytes, 0 if none. A group is bound by all those above it.
func cgroupLimit(root fs.FS) int64 {
	var least int64
	for _, dir := range cgroupDirs(root) {
		for ; ; dir = path.Dir(dir) {
			limit := readLimit(root, path.Join(dir, "memory.max")) // version 2
			if limit == 0 {
				limit = readLimit(root, path.Join(dir, "memory.limit_in_bytes")) // version 1
			}
			if limit > 0 && (least == 0 || limit < least) {
				least = limit
			}
			if dir == "sys/fs/cgroup" || !strings.HasPrefix(dir, "sys/fs/cgroup/") {
				break
			}
		}
	}
	return least
}

// cgroupDirs lists where the limits of this process's groups are, if the
// control groups are mounted at the usual place.
func cgroupDirs(root fs.FS) []string {
	dirs := []string{"sys/fs/cgroup", "sys/fs/cgroup/memory"} // as containers see their own
	b, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return dirs
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		part := strings.SplitN(lines.Text(), ":", 3) // id:controllers:path
		switch {
		case len(part) < 3:
		case part[1] == "":
			dirs = append(dirs, path.Join("sys/fs/cgroup", part[2]))
		case strings.Contains(","+part[1]+",", ",memory,"):
			dirs = append(dirs, path.Join("sys/fs/cgroup/memory", part[2]))
		}
	}
	return dirs
}

// readLimit reads a limit in bytes, 0 for "max" or a file that is not there.
func readLimit(root fs.FS, name string) int64 {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || n <= 0 {
		return 0
	}
	return n
}
