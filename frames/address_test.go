package frames

import (
	"reflect"
	"testing"
)

func TestAddress(t *testing.T) {
	b := make([]byte, 10)
	for i := range b {
		if got, want := Address(b[i:]), reflect.ValueOf(b).Pointer()+uintptr(i); got != want {
			t.Errorf("Address(b[%d:]) = %#x, want %#x", i, got, want)
		}
	}
}
