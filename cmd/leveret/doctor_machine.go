package main

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

const (
	// enoughFiles is how many files and connections a broker should be able to
	// have open. RabbitMQ's documentation asks for as many.
	enoughFiles = 65536
	// littleMemory is what a broker under load wants at least, in bytes.
	littleMemory = 128 << 20
	// maxSwappiness is how willing to swap the kernel of a machine may be whose
	// memory should answer at once.
	maxSwappiness = 10
)

// checkFiles looks at the hard limit: the broker raises its own to it.
func (p *patient) checkFiles(context.Context) []finding {
	const name = "open files"
	if p.unit {
		return one(name, fine, "the unit of the service has a limit of its own (LimitNOFILE=)", "")
	}
	hard, err := p.files()
	switch {
	case err != nil:
		return one(name, warning, "the limit cannot be read: "+err.Error(), "look at `ulimit -Hn` in the shell that starts the broker")
	case hard < enoughFiles:
		return one(name, warning, fmt.Sprintf("at most %d; each connection takes one", hard),
			fmt.Sprintf("raise it to %d or more: LimitNOFILE= in a systemd unit, --ulimit nofile= for a container, `ulimit -n` in a shell", enoughFiles))
	}
	return one(name, fine, fmt.Sprintf("at most %d", hard), "")
}

// checkMemory compares the limit that the broker keeps with what there is.
func (p *patient) checkMemory(context.Context) []finding {
	const name = "memory"
	has, limit := p.cfg.MemoryAvailable, p.cfg.MemoryLimit
	text := fmt.Sprintf("the broker may take %s of %s", megabytes(limit), megabytes(has))
	switch {
	case has > 0 && limit > has:
		return one(name, bad, text+": the system ends it before its own limit does", "set --memory-limit (vm_memory_high_watermark) to 60% or less, or give the container more")
	case has > 0 && limit > has/100*85:
		return one(name, warning, text+", which leaves little for anything else", "set --memory-limit (vm_memory_high_watermark) to 60%")
	case limit < littleMemory:
		return one(name, warning, text+": publishers will often be stopped", "give it more, or take --profile tiny")
	}
	return one(name, fine, text, "")
}

func (p *patient) checkSwap(context.Context) []finding {
	const name = "swap"
	swap := strings.Fields(strings.TrimPrefix(p.word("proc/swaps"), "Filename"))
	n, err := strconv.Atoi(p.word("proc/sys/vm/swappiness"))
	if err != nil || len(swap) <= 4 { // the header only
		return one(name, fine, "none", "")
	}
	if n > maxSwappiness {
		return one(name, warning, fmt.Sprintf("the kernel swaps readily (vm.swappiness is %d), which makes the broker stall", n),
			fmt.Sprintf("sysctl -w vm.swappiness=%d, and a file in /etc/sysctl.d that says so", maxSwappiness))
	}
	return one(name, fine, fmt.Sprintf("on, vm.swappiness is %d", n), "")
}

func (p *patient) checkHugePages(context.Context) []finding {
	const name = "transparent huge pages"
	if strings.Contains(p.word("sys/kernel/mm/transparent_hugepage/enabled"), "[always]") {
		return one(name, warning, "always: the broker takes more memory than it uses, and may stall",
			"echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, and transparent_hugepage=madvise on the kernel's command line")
	}
	return one(name, fine, "not forced on programs", "")
}

// earliest is before this program was written.
var earliest = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// checkClock looks for a clock that has jumped back behind what is on the disk,
// and one that nobody keeps right.
func (p *patient) checkClock(context.Context) []finding {
	const name, advice = "clock", "set it, and keep it right with chrony or systemd-timesyncd: TTLs and logs go by it"
	if p.now.Before(earliest) {
		return one(name, bad, "it says "+p.now.Format(time.DateTime), advice)
	}
	if newest := p.newestFile(); newest.After(p.now.Add(time.Minute)) {
		return one(name, warning, "it is behind the newest file in the data folder, of "+newest.Format(time.DateTime)+": it was set back", advice)
	}
	right, err := p.clock()
	switch {
	case err != nil:
		return one(name, fine, "whether it is kept right is not visible here", "")
	case !right:
		return one(name, warning, "nothing keeps it right", advice)
	}
	return one(name, fine, "it is kept right", "")
}

// newestFile is when the last file of the store was written; zero if there is
// none.
func (p *patient) newestFile() time.Time {
	var newest time.Time
	entries, err := fs.ReadDir(p.root, strings.TrimPrefix(p.cfg.DataDir, "/")+"/store")
	if err != nil {
		return newest
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return newest
}
