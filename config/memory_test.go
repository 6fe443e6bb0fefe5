package config

import (
	"testing"
	"testing/fstest"
)

func TestAvailableMemory(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	const meminfo = "MemTotal:        8388608 kB\nMemFree:  1 kB\n"
	for _, tt := range []struct {
		name string
		root fstest.MapFS
		want int64
	}{
		{"no such system", fstest.MapFS{}, unknownMemory},
		{"machine", fstest.MapFS{"proc/meminfo": file(meminfo)}, 8 << 30},
		{"container, version 2", fstest.MapFS{
			"proc/meminfo":             file(meminfo),
			"proc/self/cgroup":         file("0::/\n"),
			"sys/fs/cgroup/memory.max": file("536870912\n"),
		}, 512 << 20},
		{"unlimited group", fstest.MapFS{
			"proc/meminfo":             file(meminfo),
			"sys/fs/cgroup/memory.max": file("max\n"),
		}, 8 << 30},
		{"the group above is tighter", fstest.MapFS{
			"proc/meminfo":                 file(meminfo),
			"proc/self/cgroup":             file("0::/a/b\n"),
			"sys/fs/cgroup/a/memory.max":   file("1073741824\n"),
			"sys/fs/cgroup/a/b/memory.max": file("2147483648\n"),
		}, 1 << 30},
		{"version 1", fstest.MapFS{
			"proc/meminfo":     file(meminfo),
			"proc/self/cgroup": file("5:cpu,cpuacct:/x\n4:memory:/x\n"),
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": file("268435456\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   file("9223372036854771712\n"),
		}, 256 << 20},
	} {
		if got := availableMemory(tt.root); got != tt.want {
			t.Errorf("%s: availableMemory = %d, want %d", tt.name, got, tt.want)
		}
	}
}
