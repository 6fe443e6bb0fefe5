//go:build !linux

package management

// readProcess knows the runtime's memory only.
func readProcess() process {
	heap, stacks, other := readMemory()
	return process{memory: heap + stacks + other}
}
