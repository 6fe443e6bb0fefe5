package frames

import "unsafe"

// Address is where the bytes lie, for a system call that package syscall does not
// offer. They must be on the heap, where they stay, and be kept alive until after the
// call (runtime.KeepAlive). The address of no bytes is good for nothing.
func Address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
