package main

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func fileLimit() (hard uint64, err error) {
	var l unix.Rlimit
	err = unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	return l.Max, err
}

// kind is the name of one of Linux's file systems, as far as it matters; "" for
// all others.
func kind(magic int64) string {
	switch magic {
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.RAMFS_MAGIC:
		return "ramfs"
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case 0xff534d42, 0xfe534d42:
		return "cifs"
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlayfs"
	}
	return ""
}

func volumeOf(path string) (volume, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return volume{}, err
	}
	size := int64(s.Bsize)
	return volume{kind: kind(int64(s.Type) & 0xffffffff), free: int64(s.Bavail) * size, total: int64(s.Blocks) * size}, nil
}

// clockSynchronised asks the kernel, which the services that set the clock tell.
func clockSynchronised() (bool, error) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	return err == nil && state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0, err
}

func ownerOf(name string) (owner int, mode fs.FileMode, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return 0, 0, err
	}
	owner = -1
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = int(s.Uid)
	}
	return owner, info.Mode(), nil
}
